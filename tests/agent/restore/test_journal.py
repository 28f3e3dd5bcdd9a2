"""What was found is on disk before the first write, and survives whatever happens to the process or the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.agent.restore.journal import Journal, JournalEntry, JournalError, journal_path, read_boot_id
from joulie.devices.interface import Knob
from joulie.errors import InputError
from tests.agent.held_nodes import BOOT, NODE, Held, entries_on_disk, journal, rapl, target
from tests.devices.fake_capper import FakeCapper


def entry(device: str = "zone-0", found: float | None = 200_000_000, wanted: float | None = 100) -> JournalEntry:
    return JournalEntry(device, "limit_uw", found, wanted, "cpu:rapl:watts")


class TestFile:
    def test_has_the_documented_shape(self, tmp_path: Path) -> None:
        journal(tmp_path).record([entry(), entry("zone-1", None, 7.5)])
        assert json.loads((tmp_path / "restore.json").read_bytes()) == {
            "version": 1,
            "bootId": BOOT,
            "node": NODE,
            "entries": [
                {
                    "device": "zone-0",
                    "attribute": "limit_uw",
                    "found": 200_000_000,
                    "wanted": 100,
                    "backend": "cpu:rapl:watts",
                },
                {
                    "device": "zone-1",
                    "attribute": "limit_uw",
                    "found": None,
                    "wanted": 7.5,
                    "backend": "cpu:rapl:watts",
                },
            ],
        }
        assert [path.name for path in tmp_path.iterdir()] == ["restore.json"]

    def test_is_read_back_by_the_next_process(self, tmp_path: Path) -> None:
        journal(tmp_path).record([entry(), entry("zone-1", None)])
        reopened = journal(tmp_path)
        assert reopened.entries == (entry(), entry("zone-1", None))
        assert reopened.found == {Knob("zone-0", "limit_uw"): 200_000_000, Knob("zone-1", "limit_uw"): None}

    def test_an_entry_may_name_no_backend(self, tmp_path: Path) -> None:
        bare = {"device": "zone-0", "attribute": "limit_uw", "found": 5, "wanted": 3}
        contents = {"version": 1, "bootId": BOOT, "node": NODE, "entries": [bare]}
        (tmp_path / "restore.json").write_text(json.dumps(contents))
        assert journal(tmp_path).entries == (JournalEntry("zone-0", "limit_uw", 5, 3),)

    def test_goes_when_its_last_entry_goes(self, tmp_path: Path) -> None:
        kept = journal(tmp_path)
        kept.record([entry(), entry("zone-1")])
        kept.forget([entry().knob])
        assert list(entries_on_disk(tmp_path)) == [("zone-1", "limit_uw")]
        kept.forget([entry("zone-1").knob])
        assert list(tmp_path.iterdir()) == []
        assert kept.found == {}

    def test_what_was_found_is_never_replaced(self, tmp_path: Path) -> None:
        journal(tmp_path).record([entry(found=200, wanted=150)])
        kept = journal(tmp_path)
        kept.record([entry(found=150, wanted=120)])
        assert journal(tmp_path).entries == (entry(found=200, wanted=120),)

    def test_a_temporary_file_left_by_a_killed_process_is_no_journal(self, tmp_path: Path) -> None:
        journal(tmp_path).record([entry()])
        (tmp_path / "restore.json.new").write_text('{"version": 1, "bootId": "boot-1", "ent')
        kept = journal(tmp_path)
        assert (kept.entries, kept.lost) == ((entry(),), "")
        kept.record([entry("zone-1")])
        assert not (tmp_path / "restore.json.new").exists()

    def test_is_not_written_when_nothing_changed(self, tmp_path: Path) -> None:
        kept = journal(tmp_path)
        kept.record([entry()])
        before = (tmp_path / "restore.json").stat()
        kept.record([entry()])
        after = (tmp_path / "restore.json").stat()
        assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)

    def test_another_boot_discards_it(self, tmp_path: Path) -> None:
        journal(tmp_path).record([entry()])
        rebooted = journal(tmp_path, boot_id="boot-2")
        assert (rebooted.entries, rebooted.lost) == ((), "")
        assert [notice.reason for notice in rebooted.notices] == ["JournalDiscarded"]
        assert not (tmp_path / "restore.json").exists()

    def test_a_renamed_node_of_the_same_boot_keeps_it_and_says_so(self, tmp_path: Path) -> None:
        journal(tmp_path).record([entry()])
        renamed = Journal.open(journal_path(tmp_path), node="node-2", boot_id=BOOT)
        assert renamed.entries == (entry(),)
        assert [notice.reason for notice in renamed.notices] == ["JournalRenamed"]

    def test_where_it_cannot_be_written_it_says_so_and_claims_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        kept = Journal.open(tmp_path / "file" / "restore.json", node=NODE, boot_id=BOOT)
        with pytest.raises(JournalError, match=r"restore\.json cannot be written: .*no cap is set without it"):
            kept.record([entry()])
        assert kept.entries == ()
        assert kept.found == {}

    @given(
        st.lists(
            st.tuples(st.booleans(), st.integers(0, 4), st.none() | st.integers(-5, 5) | st.floats(0, 1e9)), max_size=12
        )
    )
    def test_what_is_in_memory_is_on_disk(
        self, tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[bool, int, float | None]]
    ) -> None:
        folder = tmp_path_factory.mktemp("journal")
        kept = journal(folder)
        for records, number, value in changes:
            if records:
                kept.record([entry(f"zone-{number}", value)])
            else:
                kept.forget([entry(f"zone-{number}").knob])
            assert set(journal(folder).entries) == set(kept.entries)
            assert kept.found == {each.knob: each.found for each in kept.entries}


class TestAnotherProcess:
    """`joulie agent restore`, or the agent that this one takes over from."""

    def test_what_it_found_is_taken_in(self, tmp_path: Path) -> None:
        mine = journal(tmp_path)
        journal(tmp_path).record([entry(found=200)])
        mine.refresh()
        assert mine.entries == (entry(found=200),)

    def test_a_journal_that_it_removed_is_written_again_before_the_next_write(self, tmp_path: Path) -> None:
        mine = journal(tmp_path)
        mine.record([entry()])
        other = journal(tmp_path)
        other.forget([entry().knob])
        mine.refresh()
        assert mine.entries == (entry(),)
        mine.record([entry()])
        assert journal(tmp_path).entries == (entry(),)

    def test_entries_that_it_dropped_are_written_again(self, tmp_path: Path) -> None:
        mine = journal(tmp_path)
        mine.record([entry(), entry("zone-1")])
        journal(tmp_path).forget([entry().knob])
        mine.refresh()
        mine.record([entry("zone-1")])
        assert set(journal(tmp_path).entries) == {entry(), entry("zone-1")}

    def test_a_file_that_it_broke_is_repaired_from_memory(self, tmp_path: Path) -> None:
        mine = journal(tmp_path)
        mine.record([entry()])
        (tmp_path / "restore.json").write_text("garbage")
        mine.refresh()
        assert mine.lost == ""
        assert journal(tmp_path).entries == (entry(),)


BROKEN = {
    "empty": b"",
    "cut short": b'{"version": 1, "bootId": "boot-1", "node": "node-1", "entries": [{"device": "zone-0", "attr',
    "zeros": bytes(512),
    "not UTF-8": b"\xff\xfe\x00",
    "no version": b'{"bootId": "boot-1", "node": "node-1", "entries": []}',
    "a value that is no number": b'{"version": 1, "bootId": "boot-1", "node": "node-1", "entries":'
    b' [{"device": "a", "attribute": "b", "found": "many", "wanted": 1}]}',
    "deeply nested": b"[" * 100_000,
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
class TestUnreadable:
    def test_it_is_kept_aside_and_the_loss_outlives_a_restart(self, tmp_path: Path, data: bytes) -> None:
        (tmp_path / "restore.json").write_bytes(data)
        kept = journal(tmp_path)
        assert "restore.json cannot be used" in kept.lost
        assert [(notice.reason, notice.event) for notice in kept.notices] == [("JournalLost", True)]
        aside = next(path for path in tmp_path.iterdir() if "unreadable" in path.name)
        assert aside.read_bytes() == data
        assert journal(tmp_path).lost == kept.lost

    def test_no_baseline_is_invented_from_a_device_that_may_be_capped(self, tmp_path: Path, data: bytes) -> None:
        (tmp_path / "restore.json").write_bytes(data)
        device = FakeCapper(found=60.0)  # a cap of the process before
        held = Held(tmp_path, [device])
        for _ in range(2):
            enforced = held.enforce(target(cpu_w=150))
            assert enforced.cpu.result == "blocked"
            assert "What was found before the first cap is not known" in enforced.cpu.message
            held.restart()
        assert "is not known" in held.restore().left[0]
        assert device.writes == []

    def test_a_reboot_ends_it(self, tmp_path: Path, data: bytes) -> None:
        (tmp_path / "restore.json").write_bytes(data)
        journal(tmp_path)
        assert journal(tmp_path, boot_id="boot-2").lost == ""

    def test_a_person_ends_it_by_removing_the_file(self, tmp_path: Path, data: bytes) -> None:
        (tmp_path / "restore.json").write_bytes(data)
        device = FakeCapper()
        held = Held(tmp_path, [device])
        assert held.enforce(target(cpu_w=150)).cpu.result == "blocked"
        (tmp_path / "restore.json").unlink()
        assert held.enforce(target(cpu_w=150)).cpu.result == "applied"


class TestPlaces:
    def test_each_node_of_a_pool_has_a_file(self, tmp_path: Path) -> None:
        paths = {journal_path(tmp_path, node) for node in ("a", "b", "c" * 250, "c" * 251)}
        assert len(paths) == 4
        for path in paths:
            Journal.open(path, node="x", boot_id="pool").record([entry()])
        assert all(len(path.name) < 250 for path in paths)

    def test_the_machine_tells_its_boot(self, tmp_path: Path) -> None:
        assert len(read_boot_id()) == 36
        (tmp_path / "empty").write_text("\n")
        for path in (tmp_path / "missing", tmp_path / "empty"):
            with pytest.raises(InputError, match="a reboot could not be told from a crash"):
                read_boot_id(path)


NEWER = b'{"version": 2, "bootId": "%s", "node": "node-1", "found": {"of": "another shape"}}'


def test_a_journal_of_a_newer_version_stays_for_it_and_until_then_nothing_is_capped(tmp_path: Path) -> None:
    path = journal_path(tmp_path)
    path.write_bytes(written := NEWER % BOOT.encode())
    for _ in range(2):  # also after a restart
        held = Held(tmp_path, [device := rapl()])
        outcome = held.enforce(target(cpu_w=240)).cpu
        assert (outcome.result, device.writes) == ("blocked", [])
        assert "version 2" in outcome.message
        assert len(held.restore().left) == 1
        assert path.read_bytes() == written


def test_a_journal_of_a_newer_version_and_an_earlier_boot_holds_nothing_up(tmp_path: Path) -> None:
    journal_path(tmp_path).write_bytes(NEWER % b"earlier")
    assert Held(tmp_path, [rapl()]).enforce(target(cpu_w=240)).cpu.result == "applied"
