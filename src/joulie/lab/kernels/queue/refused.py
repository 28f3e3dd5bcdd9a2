"""A job that was refused beside a reservation is refused again, until a node with room for it is freed.

Meanwhile other nodes only get fuller, what a reservation leaves only gets less, and time only gets shorter until it
begins. So a job is tried again only where a try could end otherwise.
"""

from __future__ import annotations

from joulie.lab.kernels.compiling import compiled
from joulie.lab.kernels.placement.ranking import fits
from joulie.lab.kernels.placement.trees import changed_node
from joulie.lab.kernels.world import World

MAX_CHANGES = 16  # of nodes, before it is faster to try all jobs again


@compiled
def relieve(world: World) -> None:
    """Shapes that would fit on a node that has changed since the last time."""
    run, shapes = world.run, world.shapes
    if run.changes - run.relieved_changes > MAX_CHANGES or (run.tick != run.relieved_tick and not run.one_class):
        relieve_all(world)
        return
    run.relief += 1
    for change in range(run.relieved_changes, run.changes):
        node = changed_node(world, change)
        for shape in range(len(shapes)):
            if fits(world, shape, node):
                shapes[shape].relieved_at = run.relief
    run.relieved_changes = run.changes


@compiled
def relieve_all(world: World) -> None:
    run = world.run
    run.relief += 1
    run.relieved_at, run.relieved_changes, run.relieved_tick = run.relief, run.changes, run.tick


@compiled
def is_refused(world: World, job: int) -> bool:
    """Nothing has helped since its first pod found no place. Gangs of several shapes may fail otherwise than before."""
    run, here = world.run, world.jobs[job]
    kind = world.kinds[here.kind]
    is_alike = here.last_pod - here.first_pod == kind.alike
    relieved_at = max(run.relieved_at, world.shapes[kind.shape].relieved_at)
    refused: bool = is_alike and run.reserved_count > 0 and here.refused_at >= relieved_at
    return refused
