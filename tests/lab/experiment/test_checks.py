"""Every number of an experiment has a range, and what is outside is refused with key and range before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from joulie.errors import InputError
from joulie.lab.experiment.checks import LIMITS
from joulie.lab.experiment.definition import parse_experiment
from joulie.lab.model.setup import ClusterSetup, NodeGroup, RunSetup, TraceSetup
from joulie.lab.traces.reading import jobs_of


def numeric(kind: type[Any], below: str = "") -> set[str]:
    """Keys of all numbers that a file can hold."""
    found: set[str] = set()
    for part in msgspec.structs.fields(kind):
        described = msgspec.inspect.type_info(part.type)
        if isinstance(described, msgspec.inspect.ListType):
            described = described.item_type
        if isinstance(described, msgspec.inspect.StructType):
            found |= numeric(described.cls, f"{below}{part.name}.")
        elif isinstance(described, msgspec.inspect.IntType | msgspec.inspect.FloatType):
            found.add(below + part.name)
    return found


def test_every_number_has_a_range() -> None:
    assert numeric(RunSetup) == set(LIMITS)


def written(key: str, value: float) -> str:
    if not key.startswith("cluster.nodes."):
        return f"{key} = {value!r}"
    part = key.rpartition(".")[2]
    needed = "" if part == "count" else "count = 1, "
    return f"cluster.nodes = [{{ {needed}{part} = {value!r} }}]"


@pytest.mark.parametrize("key", sorted(set(LIMITS) - {"cluster.nodes.count"}))
def test_a_number_outside_its_range_is_refused_with_key_and_range(key: str) -> None:
    least, most = LIMITS[key]
    shown = key.replace("cluster.nodes.", "cluster.nodes[0].")
    for value in (least - 1, most * 1000):
        with pytest.raises(InputError) as error:
            parse_experiment(written(key, value), "a.toml", Path())
        assert str(error.value) == f"a.toml: {shown}: {value:g} is not from {least:g} to {most:g}"


@pytest.mark.parametrize("key", sorted(set(LIMITS) - {"cluster.nodes.gpus"}))
def test_both_ends_of_a_range_are_allowed(key: str) -> None:
    for value in LIMITS[key]:
        case = parse_experiment(written(key, value), "a.toml", Path()).cases[0]
        assert case.setup is not None


def test_decisions_may_not_follow_each_other_faster_than_a_run_can_follow() -> None:
    said = (
        r"^a\.toml: settings\.RECONCILE_INTERVAL: 1e-06 s is below 1 s, the least in the lab: every decision of all "
        r"simulated time is computed$"
    )
    with pytest.raises(InputError, match=said):
        parse_experiment('settings.RECONCILE_INTERVAL = "0.000001s"', "a.toml", Path())
    assert parse_experiment('settings.RECONCILE_INTERVAL = "1s"', "a.toml", Path()).cases


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("load", 1e-300, r"log\.swf: trace\.load: at 1e-300 the jobs would come over more than ten years"),
        ("duration_scale", 10_000.0, r"log\.swf: trace\.duration_scale: 10000 makes a job longer than ten years"),
    ],
)
def test_a_file_is_not_stretched_beyond_ten_years(tmp_path: Path, key: str, value: float, said: str) -> None:
    path = tmp_path / "log.swf"
    line = "{} {} 0 100000 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1\n"
    path.write_text(line.format(1, 0) + line.format(2, 60))
    cluster = ClusterSetup(nodes=[NodeGroup(1)])
    with pytest.raises(InputError, match=said):
        jobs_of(TraceSetup(file=str(path), **{key: value}), 1, cluster)  # type: ignore[arg-type]
