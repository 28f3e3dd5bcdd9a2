"""The watch of a server whose data were restored from a backup: its versions begin again."""

from __future__ import annotations

import pytest

from tests.cluster.fault_server import CUT, HANG, Step, bookmark, event, node, page, stream
from tests.cluster.watch.watched_server import scene
from tests.cluster.watching import run

RESTORED = page(node("same", 1, note="from the backup"), node("new", 5), version=6)


@pytest.mark.parametrize(
    "signs",
    [stream(then=HANG), stream(event("ADDED", "new", 5), then=HANG), stream(bookmark(6), then=HANG)],
    ids=["silence", "event", "bookmark"],
)
def test_a_server_restored_from_a_backup_is_listed_again_and_all_of_it_counts_as_changed(signs: Step) -> None:
    """Its versions began again; what stands there under a version that is known may be something else."""

    async def scenario() -> None:
        before = page(node("same", 1), node("gone", 2), version=10)
        after = stream(event("MODIFIED", "new", 7), then=HANG)  # still lower than what was known once
        watches = [stream(event("MODIFIED", "gone", 11), then=CUT), signs, after]
        async with scene(lists=[before, RESTORED], watches=watches) as s:
            await s.reader.until(lambda: "7" in str(s.reader.objects.get("new")))
            assert set(s.reader.objects) == {"same", "new"}
            assert s.reader.objects["same"]["note"] == "from the backup"
            assert s.versions == ["10", "11", "6"]

    run(scenario())


@pytest.mark.parametrize("version", [8, 30], ids=["list that is older", "list that has overtaken"])
def test_what_the_first_events_of_a_restored_server_say_is_not_lost(version: int) -> None:
    """They are told once more by no list: what is gone is not in it, and what changed stands there as they said."""

    async def scenario() -> None:
        before = page(node("same", 1), node("gone", 2), node("kept", 3), version=10)
        events = event("DELETED", "gone", 6) + event("MODIFIED", "same", 7, note="restored")
        after = page(node("same", 7, note="restored"), node("kept", 3, note="another"), version=version)
        async with scene(lists=[before, after], watches=[stream(events, then=HANG), stream(then=HANG)]) as s:
            await s.reader.synced(2)
            assert set(s.reader.objects) == {"same", "kept"}
            assert s.reader.objects["same"]["note"] == "restored"
            assert s.reader.objects["kept"]["note"] == "another"
            assert "versions went back from 10 to 7" in s.notes.failures[0][0]

    run(scenario())
