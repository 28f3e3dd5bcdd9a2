"""Kinds of jobs within one look at the queue: which are tried, which still have room, and who is next of each."""

from __future__ import annotations

import numpy as np

from joulie.lab.compiling import compiled
from joulie.lab.memory_kernel import cursors_of, firsts_of, jobs_of, kinds_of, queue_of, run_of
from joulie.lab.slots_kernel import slots_in_all
from joulie.lab.trees_kernel import catch_up, fits_somewhere
from joulie.lab.world import NOBODY, NONE, World


@compiled
def tried_kinds(world: World) -> int:
    """How many kinds a look tries: those that wait and did not fail since something was last freed."""
    kinds, firsts, freed, count = kinds_of(world), firsts_of(world), run_of(world).freed, 0
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
    kinds = kinds_of(world)
    for place in range(first, tried):
        kind = kinds[place].tried
        last = kinds[kind].last
        is_over = kinds[kind].counts == 0 or last == NOBODY or jobs_of(world)[last].number <= upto
        if not is_over and not lacks_room(world, kind):
            return place
    return tried


@compiled
def lacks_room(world: World, kind: int) -> bool:
    """For the first pods of a kind."""
    here = kinds_of(world)[kind]
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
    """A job of a hopeless kind, as a try would: a gang is not tried again, nor anybody where nothing is reserved."""
    kinds_of(world)[kind].failed_s = -np.inf
    if run_of(world).reserved_count == 0 or kinds_of(world)[kind].pods > 1:
        leave_out(world, kind)


@compiled
def leave_out(world: World, kind: int) -> None:
    """Of the rest of a look."""
    cursors_of(world)[kinds_of(world)[kind].place] = NONE
    kinds_of(world)[kind].failed_s, kinds_of(world)[kind].counts = -np.inf, 0


@compiled
def set_cursors(world: World, tried: int, place: int) -> None:
    """On who is next of each kind, from a place in the queue on."""
    jobs, kinds, cursors, queue = jobs_of(world), kinds_of(world), cursors_of(world), queue_of(world)
    while queue[place].job == NOBODY:  # the last place is never empty
        place += 1
    for number in range(tried):
        cursors[number] = firsts_of(world)[kinds[number].tried] if kinds[kinds[number].tried].counts else NONE
        while cursors[number] != NONE and jobs[cursors[number]].number < jobs[queue[place].job].number:
            cursors[number] = jobs[cursors[number]].next_waiting


@compiled
def earliest(world: World, tried: int) -> int:
    """Of those who are next of their kinds, who came first."""
    jobs, cursors, first = jobs_of(world), cursors_of(world), NONE
    for place in range(tried):
        job = cursors[place]
        if job != NONE and (first == NONE or jobs[job].number < jobs[first].number):
            first = job
    return int(first)
