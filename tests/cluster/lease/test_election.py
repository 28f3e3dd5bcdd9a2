"""Leader election: one leads, never two, whatever freezes, hangs, crashes or disagrees about the time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import json

from joulie.cluster.lease.election import LeaderElector, LeaseTimes, boot_time_s, unique_identity
from joulie.cluster.lease.record import LeaseRecord, micro_time
from joulie.cluster.memory.cluster import MemoryCluster, MemoryServer
from joulie.cluster.port import LEASES
from tests.cluster.lease.candidates import NAME, NAMESPACE, Candidate, Told
from tests.cluster.watching import run

QUICK = LeaseTimes(3.0, 0.5, 0.05)  # what ends by itself is told from what ends with the lease also beside other load


def pair(server: MemoryServer | None = None) -> tuple[Candidate, Candidate]:
    shared = server or MemoryServer()
    return Candidate(shared, "one"), Candidate(shared, "two", wall_s=-86_400.0)


def advance(seconds: float, *candidates: Candidate) -> None:
    for candidate in candidates:
        candidate.now_s += seconds
        candidate.wall_s += seconds


def spec_of(candidate: Candidate) -> dict[str, Any]:
    spec: dict[str, Any] = candidate.cluster.server.all(LEASES)[0]["spec"]
    return spec


def test_the_first_leads_and_the_second_waits_as_long_as_the_first_renews() -> None:
    async def scenario() -> None:
        one, two = pair()
        for _ in range(50):
            await one.elector.step()
            await two.elector.step()
            assert (one.leads(), two.leads()) == (True, False)
            advance(2.0, one, two)
        assert one.told.story == ["leader: one", "gained"]
        assert two.told.story == ["leader: one"]
        assert one.cluster.calls["get", "leases"] == 1  # renewing takes one call
        assert spec_of(one)["leaseTransitions"] == 0

    run(scenario())


def test_after_a_crash_the_other_leads_when_the_lease_has_run_out_and_not_before() -> None:
    async def scenario() -> None:
        one, two = pair()
        await one.elector.step()
        await two.elector.step()
        advance(14.9, two)
        await two.elector.step()
        assert not two.leads()
        advance(0.2, two)
        await two.elector.step()
        assert two.leads()
        assert spec_of(two)["holderIdentity"] == "two"
        assert spec_of(two)["leaseTransitions"] == 1

    run(scenario())


def test_a_frozen_leader_says_no_by_the_clock_alone_and_writes_nothing_until_it_leads_again() -> None:
    async def scenario() -> None:
        one, two = pair()
        await one.elector.step()
        await two.elector.step()
        advance(60.0, one, two)  # one was frozen; two was not
        assert not one.leads(), "no code of ours ran in between"
        assert one.elector.seconds_left() == 0.0
        await two.elector.step()
        assert two.leads()
        await one.elector.step()
        assert not one.leads()
        assert one.told.story[2:] == ["lost: the Lease was not renewed in time", "leader: two"]

    run(scenario())


def test_an_answer_that_arrives_after_a_freeze_makes_no_leader() -> None:
    async def scenario() -> None:
        one, _ = pair()
        one.cluster.latency_s = 1.0
        step = asyncio.create_task(one.elector.step())
        await asyncio.sleep(1.5)  # the Lease is not there; it is being created
        advance(60.0, one)
        await step
        assert not one.leads()
        assert "gained" not in one.told.story

    run(scenario())


def test_a_leader_that_cannot_reach_the_server_stops_before_another_can_start() -> None:
    async def scenario() -> None:
        one, two = pair()
        await one.elector.step()
        await two.elector.step()
        one.cluster.cut_off()
        for _ in range(9):
            advance(1.0, one, two)
            await one.elector.step()
            await two.elector.step()
            assert (one.leads(), two.leads()) == (True, False)
        advance(1.0, one, two)
        assert (one.leads(), two.leads()) == (False, False)
        one.cluster.reconnect()
        await one.elector.step()  # no other took it: it may lead again
        assert one.leads()
        assert one.told.story.count("gained") == 2

    run(scenario())


def test_a_clean_stop_hands_over_at_once() -> None:
    async def scenario() -> None:
        one, two = pair()
        await one.elector.step()
        await two.elector.step()
        await one.elector.release()
        assert not one.leads()
        assert spec_of(one)["holderIdentity"] == ""
        await two.elector.step()
        assert two.leads()
        assert one.told.story[-1] == "lost: released"

    run(scenario())


@pytest.mark.parametrize("verb", ["get", "replace"])
def test_a_release_survives_a_lost_answer_and_never_takes_anothers_lease(verb: str) -> None:
    async def scenario() -> None:
        one, two = pair()
        await one.elector.step()
        one.cluster.fail_next(verb="replace", status=0, applied=True)  # renewed, but the response was lost
        await one.elector.step()
        await one.elector.release()
        assert spec_of(one)["holderIdentity"] == ""
        await two.elector.step()
        one.cluster.fail_next(verb=verb)
        await one.elector.release()
        assert spec_of(two)["holderIdentity"] == "two"

    run(scenario())


def test_a_conflict_costs_a_look_and_not_the_leadership() -> None:
    async def scenario() -> None:
        one, two = pair()
        await one.elector.step()
        await two.cluster.patch(LEASES, NAME, {"metadata": {"labels": {"x": "y"}}}, namespace=NAMESPACE)
        await one.elector.step()
        assert one.leads()
        await one.elector.step()
        assert one.leads()
        assert one.told.story.count("gained") == 1
        lease = json.decode(await one.cluster.get(LEASES, NAME, namespace=NAMESPACE))
        assert lease["metadata"]["labels"] == {"x": "y"}

    run(scenario())


def test_a_lease_that_another_took_ends_the_leadership_at_once() -> None:
    async def scenario() -> None:
        one, two = pair()
        await one.elector.step()
        theirs = {"spec": {"holderIdentity": "kubectl"}}
        await two.cluster.patch(LEASES, NAME, theirs, namespace=NAMESPACE)
        await one.elector.step()  # conflict
        await one.elector.step()
        assert not one.leads()
        assert one.told.story[-1] == "lost: kubectl holds the Lease"

    run(scenario())


@pytest.mark.parametrize("spec", [{}, {"holderIdentity": None}, {"holderIdentity": 7, "leaseDurationSeconds": "x"}])
def test_a_lease_full_of_nonsense_is_taken(spec: dict[str, Any]) -> None:
    async def scenario() -> None:
        one, _ = pair()
        one.cluster.put(LEASES, {"metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": spec})
        await one.elector.step()
        assert one.leads()

    run(scenario())


def test_a_wall_clock_that_stands_still_still_renews() -> None:
    async def scenario() -> None:
        one, two = pair()
        await one.elector.step()
        for _ in range(20):
            await two.elector.step()
            advance(2.0, one, two)
            one.wall_s = 0.0
            await one.elector.step()
            assert (one.leads(), two.leads()) == (True, False)

    run(scenario())


def test_a_server_that_hangs_cannot_hold_the_leader_beyond_its_time() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        told = Told()
        cluster = MemoryCluster()
        elector = LeaderElector(
            cluster, namespace=NAMESPACE, name=NAME, identity="one", times=QUICK, hooks=told, clock=loop.time
        )
        task = asyncio.create_task(elector.run())
        while not elector.is_leader():
            await asyncio.sleep(0.01)
        cluster.hang_next(1_000)
        began_s = loop.time()
        while elector.is_leader():
            await asyncio.sleep(0.005)
        assert loop.time() - began_s <= QUICK.lease_s
        while "lost: the Lease was not renewed in time" not in told.story:
            await asyncio.sleep(0.005)
        assert loop.time() - began_s <= QUICK.lease_s, "the hook was told while calls still hang"
        elector.stop()
        await task

    run(scenario())


def test_a_call_that_ignores_being_cancelled_is_left_behind() -> None:
    class Stubborn(MemoryCluster):
        async def get(self, *args: Any, **options: Any) -> bytes:
            for _ in range(30):
                try:
                    await asyncio.sleep(0.1)
                except asyncio.CancelledError:
                    continue
            return b""

    async def scenario() -> None:
        elector = LeaderElector(
            Stubborn(), namespace=NAMESPACE, name=NAME, identity="one", times=LeaseTimes(0.9, 0.4, 0.1)
        )
        async with asyncio.timeout(2.5):  # its calls take 3 s, whatever they are told
            await elector.step()
        assert not elector.is_leader()

    run(scenario())


def test_two_processes_hand_over_again_and_again() -> None:
    async def scenario() -> None:
        server, loop = MemoryServer(), asyncio.get_running_loop()
        leaders: list[str] = []
        electors = {}
        tasks = {}
        for identity in ("a", "b"):
            electors[identity] = LeaderElector(
                MemoryCluster(server), namespace=NAMESPACE, name=NAME, identity=identity, times=QUICK
            )
            tasks[identity] = asyncio.create_task(electors[identity].run())
        for _ in range(2):
            while not any(elector.is_leader() for elector in electors.values()):
                await asyncio.sleep(0.005)
            (leader,) = (identity for identity, elector in electors.items() if elector.is_leader())
            leaders.append(leader)
            began_s = loop.time()
            electors.pop(leader).stop()
            await tasks.pop(leader)
            if electors:
                (heir,) = electors.values()
                while not heir.is_leader():
                    await asyncio.sleep(0.005)
                assert loop.time() - began_s < QUICK.lease_s  # it did not wait for the lease to end
        assert sorted(leaders) == ["a", "b"]

    run(scenario())


def test_cancelling_gives_the_lease_back() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster()
        elector = LeaderElector(cluster, namespace=NAMESPACE, name=NAME, identity="one", times=QUICK)
        task = asyncio.create_task(elector.run())
        while not elector.is_leader():
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not elector.is_leader()
        assert LeaseRecord(await cluster.get(LEASES, NAME, namespace=NAMESPACE)).holder == ""

    run(scenario())


def test_the_clock_counts_while_the_machine_sleeps_and_identities_differ() -> None:
    assert boot_time_s() <= boot_time_s()
    assert unique_identity("pod-0") != unique_identity("pod-0")
    assert unique_identity("pod-0").startswith("pod-0_")
    assert micro_time(0) == "1970-01-01T00:00:00.000000Z"
    assert micro_time(1e9 + 1e-6) == "2001-09-09T01:46:40.000001Z"
