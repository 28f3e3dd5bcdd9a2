"""Gangs of unlike pods: refused before a run if, and where one can see it only if, they have no place at once."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from joulie.errors import InputError
from joulie.lab.model.jobs import ANY_MODEL
from joulie.lab.model.setup import ClusterSetup, NodeGroup
from joulie.lab.traces.feasibility import misfits
from joulie.lab.traces.gang_fit import AlikePods, Together
from joulie.lab.traces.reading import read_trace
from joulie.lab.traces.room import Room
from tests.lab.traces.test_bad_traces import GANG, GPU, put
from tests.lab.traces.trace_lines import record

TWO_MODELS = ClusterSetup(nodes=[NodeGroup(1, gpu="H100 SXM", gpus=4), NodeGroup(1, gpu="L40S", gpus=4)])


def gpu_pod(name: str, gpus: int, model: str = "") -> dict[str, object]:
    template: dict[str, object] = {"requests": {"cpu": "8", "nvidia.com/gpu": gpus}}
    if model:
        template["nodeSelector"] = {"joulie.io/hw.gpu-model": model}
    return record(0, jobId=name, **GANG, podTemplate=template, **GPU)


def test_boards_are_counted_by_the_model_that_pods_insist_on(tmp_path: Path) -> None:
    fits = [gpu_pod("a", 2, "H100 SXM"), gpu_pod("b", 2, "H100 SXM"), gpu_pod("c", 3), gpu_pod("d", 1, "L40S")]
    path = put(tmp_path / "fits.jsonl", *fits)
    assert len(read_trace(path, cluster=TWO_MODELS)) == 1
    path = put(tmp_path / "not.jsonl", gpu_pod("s", 1), *fits[1:2], gpu_pod("e", 3, "H100 SXM"))
    with pytest.raises(InputError, match=r"not\.jsonl:2: .*/gpu: gang 'g' asks for 5 GPUs, more than the 4 that these"):
        read_trace(path, cluster=TWO_MODELS)


def test_a_board_may_be_called_as_its_driver_calls_it(tmp_path: Path) -> None:
    names = ["L40S", "NVIDIA-H100-80GB-HBM3", "H100 SXM", "", "h100-sxm", "of nobody"]
    path = put(tmp_path / "t.jsonl", *(gpu_pod(f"p{place}", 1, name) for place, name in enumerate(names)))
    jobs = read_trace(path)
    assert jobs.gpu_models == ("L40S", "H100 SXM", "of nobody")
    assert jobs.gpu_model.tolist() == [0, 1, 1, ANY_MODEL, 1, 2]
    assert jobs.gpu_model.dtype == np.int32


def by_hand(asked: list[AlikePods], room: Room) -> bool:
    """Every pod on every node."""
    pods = [one for one in asked for _ in range(one.pods)]
    nodes = [(kind, n.mcores, n.gpus) for kind, n in enumerate(room.nodes) for _ in range(n.machines)]
    for places in product(range(len(nodes)), repeat=len(pods)):
        mcores, gpus = [n[1] for n in nodes], [n[2] for n in nodes]
        for pod, at in zip(pods, places, strict=True):
            mcores[at] -= pod.mcores
            gpus[at] -= pod.gpus
        if (
            min(mcores) >= 0
            and min(gpus) >= 0
            and all(nodes[at][0] in p.on for p, at in zip(pods, places, strict=True))
        ):
            return True
    return False


def test_small_gangs_are_refused_if_and_only_if_no_placement_holds_them() -> None:
    rng = np.random.default_rng(8)
    seen = {True: 0, False: 0}
    for _ in range(300):
        groups = [
            NodeGroup(1, cpu="EPYC 9375F", sockets=1, gpu="H100 SXM", gpus=int(rng.integers(2, 9))),
            NodeGroup(int(rng.integers(1, 3)), gpu="L40S", gpus=4, cpu="EPYC 9375F"),
            NodeGroup(1, cpu="EPYC 9375F", sockets=1),
        ]
        room = Room(ClusterSetup(nodes=groups, cpu_work_on_gpu_nodes=bool(rng.integers(2))))
        asked = []
        for _ in range(rng.integers(2, 5)):
            cores, gpus = float(rng.integers(1, 40)), int(rng.choice([0, 1, 2, 3, 4]))
            model = str(rng.choice(["", "", "H100 SXM", "L40S"])) if gpus else ""
            on = frozenset(kind for kind, fit in enumerate(room.on_each(cores, gpus, model)) if fit)
            asked.append(AlikePods(int(cores * 1000), gpus, on, int(rng.integers(1, 3))))
        if not all(one.on for one in asked) or sum(one.pods for one in asked) > 6:
            continue
        stands = by_hand(asked, room)
        assert (Together(room).reason(asked) is None) == stands, (groups, asked)
        seen[stands] += 1
    assert min(seen.values()) > 20, seen


def test_a_search_without_end_lets_a_gang_pass() -> None:
    together = Together(Room(ClusterSetup(nodes=[NodeGroup(24, gpu="H100 SXM", gpus=8)])))
    hard = [AlikePods(1000 + 7 * number, 1 + number % 5, frozenset([0]), 1) for number in range(64)]
    assert sum(one.gpus for one in hard) == 24 * 8 - 2
    for _ in range(100):
        assert together.reason(hard) is None


def test_a_gang_of_thousands_of_unlike_pods_is_judged_at_once() -> None:
    cluster = ClusterSetup(nodes=[NodeGroup(1, gpu="H100 SXM", gpus=64), NodeGroup(4)])
    together = Together(Room(cluster))
    fits = [AlikePods(1 + number % 18, 0, frozenset([1]), 1) for number in range(8000)]
    large = [AlikePods(97_000 + number, 0, frozenset([1]), 1) for number in range(5)]
    assert together.reason(fits) is None
    why = together.reason([*fits, *large])
    assert why is not None
    assert why.words == "has 5 pods of at least 97 cores, more than the 4 that the empty cluster holds"
    assert sorted(why.parts) == [*range(8000, 8005)]


def test_a_third_of_the_cores_is_counted_in_thousandths_as_a_run_does(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text("1 0 0 9 128 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1\n2 0 0 9 130 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1\n")
    jobs = read_trace(str(path))
    assert np.all(jobs.gpu_model == ANY_MODEL)
    cluster = ClusterSetup(nodes=[NodeGroup(1, cpu="EPYC 9375F", sockets=1), NodeGroup(1, cpu="EPYC 9654", sockets=1)])
    assert [misfit.job for misfit in misfits(jobs, cluster)] == [0, 1]  # 2 × 64 where 32 and 96 are, 3 × 43.334
