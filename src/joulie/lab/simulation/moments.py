"""A moment of a run as it was for one job that waits: how many are ahead, which nodes have room, what each is worth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from joulie.control.placement.score_table import rejection
from joulie.control.scoring import CLASS_CODES, headroom_after, headroom_before, total_score, whole_points
from joulie.lab.kernels.world import JOULIE, WAITING, WATT, World
from joulie.lab.model.jobs import ANY_MODEL
from joulie.model.names import PERFORMANCE, STANDARD
from joulie.physics.marginal import marginal_power_w, share

Rows = NDArray[np.int32]  # of nodes

BEST = 8  # nodes that are shown, besides those that were chosen
_CLASS_OF = {code: name for name, code in CLASS_CODES.items()}


class RankedNode(Struct, frozen=True, rename="camel"):
    """A node at that moment, and what speaks for it."""

    node: str
    node_class: str
    free_cores: float
    free_gpus: int
    points: float | None  # of the score; None where another ranking chose
    headroom: float | None  # percent of its power budget that is left with the pod
    pod_w: float | None
    chosen: bool
    woken: bool  # it was switched off, and was chosen all the same


class Moment(Struct, frozen=True, rename="camel"):
    """How things stood for the job's first pod."""

    time_s: float
    waiting: int  # jobs, this one included
    ahead: int  # of them in front of it
    reasons: dict[str, int]  # why nodes were out of the question, and how many; "room" are those that fit
    best: tuple[RankedNode, ...]


def moment_of(now_s: float, world: World, job: int, names: Sequence[str], chosen: Rows) -> Moment:
    """As it is now; `chosen` are the nodes that the job will get."""
    nodes = world.nodes
    records = world.jobs[: int(world.run["pages"] * world.run["page_jobs"])]
    waiting = records[records["state"] == WAITING]
    its = waiting[waiting["number"] == job][0]
    shape = world.shapes[int(world.pods["shape"][its["first_pod"]])]
    reasons, fits = _reasons(world, shape, now_s)
    points, headroom, watts = _scores(world, shape)
    scored = int(world.run["ranking"]) == JOULIE and bool(world.run["known"])
    order = np.lexsort((np.arange(len(nodes)), -points if scored else -nodes["free_mcores"]))
    best = [
        RankedNode(
            node=names[row],
            node_class=_CLASS_OF[int(nodes["class_code"][row])],
            free_cores=float(nodes["free_mcores"][row]) / 1000.0,
            free_gpus=int(nodes["free_gpus"][row]),
            points=float(points[row]) if scored else None,
            headroom=float(headroom[row]) if scored else None,
            pod_w=float(watts[row]) if scored else None,
            chosen=row in chosen,
            woken=row in chosen and bool(nodes["asleep"][row]),
        )
        for row in dict.fromkeys([*order[fits[order]][:BEST].tolist(), *chosen.tolist()])
    ]
    ahead = int(np.count_nonzero(waiting["number"] < job))
    return Moment(now_s, len(waiting), ahead, reasons, tuple(best))


def _reasons(world: World, shape: np.void, now_s: float) -> tuple[dict[str, int], NDArray[np.bool_]]:
    """The first reason that holds against each node, counted; and those against which none does."""
    nodes, performance = world.nodes, bool(shape["performance"])
    left = np.ones(len(nodes), np.bool_)
    reasons: dict[str, int] = {}

    def leave_out(reason: str, which: NDArray[np.bool_]) -> None:
        count = int(np.count_nonzero(left & which))
        if count:
            reasons[reason] = count
            left[which] = False

    if shape["gpus"] == 0:
        leave_out("kept for GPU work", ~nodes["takes_cpu_work"])
    elif shape["gpu_model"] != ANY_MODEL:
        leave_out("have another GPU model", nodes["gpu_model"] != shape["gpu_model"])
    leave_out("are too small", (nodes["mcores"] < shape["mcores"]) | (nodes["gpus"] < shape["gpus"]))
    for code, name in _CLASS_OF.items():
        if rejection(PERFORMANCE if performance else STANDARD, name) is not None:
            leave_out(f"are {name}, and the pod's class is performance", nodes["class_code"] == code)
    leave_out("are switched off", nodes["asleep"])
    leave_out("are starting", nodes["ready_s"] > now_s)
    leave_out("have too few cores free", nodes["free_mcores"] < shape["mcores"])
    leave_out("have too few GPUs free", nodes["free_gpus"] < shape["gpus"])
    reasons["room"] = int(left.sum())
    return reasons, left


def _scores(world: World, shape: np.void) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Points, headroom with the pod and its watts on every node, by the formulas of the extender."""
    nodes, performance = world.nodes, bool(shape["performance"])
    watts = marginal_power_w(
        share(float(shape["mcores"]) / 1000.0, nodes["inverse_cores"]),
        share(float(shape["gpus"]), nodes["inverse_gpus"]),
        nodes["cpu_full_w"],
        nodes["gpu_full_performance_w"] if performance else nodes["gpu_full_standard_w"],
    )
    before = headroom_before(
        nodes["capped_w"], nodes["measured_w"], nodes["recent"] / WATT, np.zeros(len(nodes)), nodes["budget_w"]
    )
    after = headroom_after(before, watts, nodes["points_per_w"])
    rest = nodes["rest_performance"] if performance else nodes["rest_standard"]
    return whole_points(total_score(after, rest), int(world.run["score_max"])), after, watts
