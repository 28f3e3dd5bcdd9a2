"""Kinds of jobs within one look at the queue: which are tried, which still have room, and the next job of each."""

from __future__ import annotations

import numpy as np

from joulie.lab.kernels.compiling import compiled
from joulie.lab.kernels.placement.slots import slots_in_all
from joulie.lab.kernels.placement.trees import catch_up, fits_somewhere
from joulie.lab.kernels.world import ABSENT, NONE, World


@compiled
def tried_kinds(world: World) -> int:
    """How many kinds a look tries: those that wait and did not fail since something was last freed."""
    kinds, firsts, freed, count = world.kinds, world.firsts, world.run.freed, 0
    for kind in range(len(firsts)):
        kinds[kind].failed_s, kinds[kind].counts = -np.inf, 0
        if firsts[kind] != NONE and kinds[kind].fails_at != freed:
            kinds[kind].failed_s, kinds[kind].counts, kinds[kind].hopeless = np.inf, 1, False
            kinds[kind].place, kinds[count].tried = count, kind
            count += 1
    return count


@compiled
def first_hopeful(world: World, first: int, tried: int, upto: int) -> int:
    """Of these kinds, the first with room and with jobs that come after one. Within a look both only get less."""
    kinds = world.kinds
    for place in range(first, tried):
        kind = kinds[place].tried
        last = kinds[kind].last
        is_over = kinds[kind].counts == 0 or last == ABSENT or world.jobs[last].number <= upto
        if not is_over and not lacks_room(world, kind):
            return place
    return tried


@compiled
def lacks_room(world: World, kind: int) -> bool:
    """For the first pods of a kind."""
    here = world.kinds[kind]
    if not here.hopeless:
        if here.alike > 1:
            here.hopeless = slots_in_all(world, here.shape) < here.alike
        else:
            catch_up(world, here.shape)
            here.hopeless = not fits_somewhere(world, here.shape)
    hopeless: bool = here.hopeless
    return hopeless


@compiled
def refuse(world: World, kind: int) -> None:
    """A job of a hopeless kind, as a try would: a gang is not tried again, nor any job where nothing is reserved."""
    world.kinds[kind].failed_s = -np.inf
    if world.run.reserved_count == 0 or world.kinds[kind].pods > 1:
        leave_out(world, kind)


@compiled
def leave_out(world: World, kind: int) -> None:
    """Of the rest of a look."""
    world.cursors[world.kinds[kind].place] = NONE
    world.kinds[kind].failed_s, world.kinds[kind].counts = -np.inf, 0


@compiled
def set_cursors(world: World, tried: int, place: int) -> None:
    """Point at the next job of each kind, from a place in the queue on."""
    jobs, kinds, cursors, queue = world.jobs, world.kinds, world.cursors, world.queue
    while queue[place].job == ABSENT:  # the last place is never empty
        place += 1
    for number in range(tried):
        cursors[number] = world.firsts[kinds[number].tried] if kinds[kinds[number].tried].counts else NONE
        while cursors[number] != NONE and jobs[cursors[number]].number < jobs[queue[place].job].number:
            cursors[number] = jobs[cursors[number]].next_waiting


@compiled
def earliest(world: World, tried: int) -> int:
    """Of the next jobs of all kinds, the one that arrived first."""
    jobs, cursors, first = world.jobs, world.cursors, NONE
    for place in range(tried):
        job = cursors[place]
        if job != NONE and (first == NONE or jobs[job].number < jobs[first].number):
            first = job
    return int(first)
