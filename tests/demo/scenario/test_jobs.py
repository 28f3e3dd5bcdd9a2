"""The demo's day and its work: the same for the same seed."""

from __future__ import annotations

import msgspec
import pytest

from joulie.cluster.decoding import decoders
from joulie.demo.scenario.day import DAY_S, PARTS, SCENES, WHOLE_DAY, demand, outside_c, part_of_day, scene_named
from joulie.demo.scenario.jobs import jobs_of_day, jobs_of_scene, pod_manifest
from joulie.demo.scenario.machines import LONELY_NODE, PINNED_NODE, node_manifests, places
from joulie.demo.scenario.placement import FreeRoom
from joulie.errors import InputError


def test_a_seed_gives_the_same_jobs_and_another_seed_others() -> None:
    jobs_of_day.cache_clear()
    first = jobs_of_day(7)
    jobs_of_day.cache_clear()
    assert jobs_of_day(7) == first
    assert jobs_of_day(8) != first
    assert jobs_of_day(7, 1) != first


def test_jobs_come_in_order_within_the_day_and_have_names_of_their_own() -> None:
    jobs = jobs_of_day(3)
    assert [job.submit_s for job in jobs] == sorted(job.submit_s for job in jobs)
    assert all(0 <= job.submit_s < DAY_S for job in jobs)
    everything = [job.key for day in (0, 1) for job in jobs_of_day(3, day)]
    assert len(set(everything)) == len(everything)


def test_scenes_share_out_the_jobs_of_the_day() -> None:
    parts = [job for part in PARTS for job in jobs_of_scene(7, part)]
    assert parts == list(jobs_of_scene(7, WHOLE_DAY))
    assert all(jobs_of_scene(7, part) for part in PARTS)


def test_demand_and_heat_have_their_crest_around_noon_and_in_the_afternoon() -> None:
    times = [DAY_S * share / 100 for share in range(100)]
    assert part_of_day(max(times, key=outside_c)) == "afternoon"
    assert demand(0.0) < 0.5 < demand(DAY_S / 2)
    assert [part_of_day(part.begins_s) for part in PARTS] == ["morning", "afternoon", "night"]


def test_a_scene_that_is_over_begins_anew() -> None:
    afternoon = SCENES["afternoon"]
    assert afternoon.day_time_s(afternoon.length_s + 5) == afternoon.begins_s + 5


def test_an_unknown_scene_is_answered_with_those_there_are() -> None:
    with pytest.raises(InputError, match="day, morning, afternoon, night"):
        scene_named("dusk")


def test_every_job_is_a_pod_that_fits_an_empty_node() -> None:
    room = FreeRoom(places())
    for job in jobs_of_day(7):
        pod = decoders.decode_pod(msgspec.json.encode(pod_manifest(job)))
        assert (pod.cpu_cores, pod.gpus, pod.workload_class) == (job.cores, job.gpus, job.workload_class)
        assert room.fitting(job), job


def test_the_nodes_of_the_story_exist_and_racks_and_zones_are_labelled() -> None:
    nodes = {body["metadata"]["name"]: body["metadata"]["labels"] for body in node_manifests()}
    assert len(nodes) == 40
    assert {LONELY_NODE, PINNED_NODE} <= nodes.keys()
    assert {labels["joulie.io/rack"] for labels in nodes.values()} == {f"rack-{n}" for n in range(4)}
    assert {labels["joulie.io/cooling-zone"] for labels in nodes.values()} == {"north", "south"}
    assert sorted(nodes) == [place.name for place in places()]


def test_room_that_is_taken_is_given_back() -> None:
    room = FreeRoom(places())
    job = next(job for job in jobs_of_day(7) if job.gpus)
    before = room.fitting(job)
    free = room.least_allocated(before[0], job)
    while before[0] in room.fitting(job):
        room.take(before[0], job)
    assert before[0] not in room.fitting(job)
    assert room.least_allocated(before[0], job) < free
    boards = room.places[before[0]].gpus
    for _ in range(int(boards // job.gpus)):
        room.give_back(before[0], job)
    assert room.fitting(job) == before


def test_the_extender_outweighs_least_allocated_and_ties_go_by_name() -> None:
    room = FreeRoom(places())
    job = next(job for job in jobs_of_day(7) if not job.gpus)
    names = room.fitting(job)
    assert room.best(job, names, {names[3]: 50, names[5]: 49}) == names[3]
    same = [name for name in names if name.startswith("genoa")]
    assert room.best(job, same) == min(same)
    assert room.best(job, []) is None
