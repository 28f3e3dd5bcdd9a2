"""Power limits of CPU packages: what is written where, and what is put back."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from joulie.devices.interface import Knob, NoDeviceError, NotSupportedError, Value
from joulie.devices.rapl.capper import Rapl
from joulie.devices.sysfs import SysFs
from tests.devices.enforcing import Clock, find, put, run
from tests.devices.sysfs_pieces import UW, Tree
from tests.devices.sysfs_trees import build

INTEL_RAPL = "/sys/devices/virtual/powercap/intel-rapl"
LONG, SHORT = "constraint_0_power_limit_uw", "constraint_1_power_limit_uw"


def knob(zone: str, attribute: str) -> Knob:
    return Knob(f"{INTEL_RAPL}/intel-rapl:{zone}", attribute)


def machine(name: str, folder: Path, catalogue_max_w: float | None = None) -> tuple[Tree, Rapl]:
    tree = build(name, folder)
    return tree, Rapl(SysFs(tree.sys), Clock(), catalogue_max_w)


def wanted(rapl: Rapl, target_w: float, found: dict[Knob, Value]) -> dict[Knob, Value]:
    return {setting.knob: setting.value for setting in rapl.settings(target_w, found)}


class TestKnobs:
    def test_only_the_packages_of_a_machine_with_psys_and_doubles_are_touched(self, tmp_path: Path) -> None:
        _, rapl = machine("intel-i9-13900hx", tmp_path)
        assert run(rapl.knobs()) == [knob("0", LONG), knob("0", SHORT), knob("0", "enabled")]

    def test_a_package_is_known_by_its_name_not_by_its_id(self, tmp_path: Path) -> None:
        _, rapl = machine("intel-xeon-6530-dual", tmp_path, catalogue_max_w=270)
        assert [k.device[-1] for k in run(rapl.knobs()) if k.attribute == LONG] == ["1", "2"]  # 0 is psys

    @pytest.mark.parametrize(
        "name", ["package-", "package-0-dram", "package-0-die-", "package-x", "my package-0", "pkg-0"]
    )
    def test_a_zone_whose_name_only_resembles_a_package_is_left_alone(self, name: str, tmp_path: Path) -> None:
        tree, rapl = machine("intel-xeon-6148-dual", tmp_path)
        tree.put(f"{INTEL_RAPL}/intel-rapl:1/name", name)
        assert {k.device[-1] for k in run(rapl.knobs())} == {"0"}

    def test_zone_ids_beyond_nine_are_letters(self, tmp_path: Path) -> None:
        _, rapl = machine("intel-xeon-8280l-16-sockets", tmp_path)
        ids = [k.device.rpartition(":")[2] for k in run(rapl.knobs()) if k.attribute == LONG]
        assert ids == list("fedcba9876543210")  # in the order of the packages

    def test_constraints_are_known_by_their_names_not_by_their_numbers(self, tmp_path: Path) -> None:
        tree, rapl = machine("intel-xeon-9242-dies", tmp_path)
        settings = wanted(rapl, 350, find(rapl))
        assert tree.text("devices/virtual/powercap/intel-rapl/intel-rapl:0/constraint_1_name") == "long_term"
        assert settings[knob("0", "constraint_1_power_limit_uw")] == 87_500_000
        assert settings[knob("0", "constraint_0_power_limit_uw")] == 105_000_000

    def test_a_package_seen_only_through_mmio_is_capped_there(self, tmp_path: Path) -> None:
        tree, rapl = machine("intel-i9-13900hx", tmp_path)
        tree.remove_zone("package-0")
        assert {k.device for k in run(rapl.knobs())} == {f"{INTEL_RAPL}-mmio/intel-rapl-mmio:0"}

    def test_zones_are_found_where_only_the_devices_are_mounted(self, tmp_path: Path) -> None:
        tree, rapl = machine("intel-xeon-6148-dual", tmp_path)
        before = run(rapl.knobs())
        for entry in tree.file("class/powercap").iterdir():
            entry.unlink()
        assert run(rapl.knobs()) == before

    def test_names_do_not_depend_on_where_sys_is_mounted(self, tmp_path: Path) -> None:
        tree, rapl = machine("intel-xeon-6148-dual", tmp_path)
        (tmp_path / "host-sys").symlink_to(tree.sys)
        assert run(Rapl(SysFs(tmp_path / "host-sys"), Clock()).knobs()) == run(rapl.knobs())


class TestCaps:
    def test_watts_of_the_node_are_split_over_its_packages(self, tmp_path: Path) -> None:
        tree, rapl = machine("intel-xeon-6148-dual", tmp_path)
        put(rapl, rapl.settings(180, find(rapl)))
        for zone in ("0", "1"):
            assert tree.value(knob(zone, LONG)) == 90 * UW
            assert tree.value(knob(zone, SHORT)) == 108 * UW
            assert tree.value(knob(zone, "enabled")) == 1

    def test_unequal_packages_get_watts_in_proportion_to_their_maxima(self, tmp_path: Path) -> None:
        tree, rapl = machine("intel-xeon-6148-dual", tmp_path)
        tree.put(f"{INTEL_RAPL}/intel-rapl:1/constraint_0_max_power_uw", 50 * UW)
        settings = wanted(rapl, 100, find(rapl))
        assert (settings[knob("0", LONG)], settings[knob("1", LONG)]) == (75 * UW, 25 * UW)

    def test_dies_share_their_package(self, tmp_path: Path) -> None:
        _, rapl = machine("intel-xeon-9242-dies", tmp_path)
        settings = wanted(rapl, 350, find(rapl))
        assert sum(v or 0 for k, v in settings.items() if k.attribute == "constraint_1_power_limit_uw") == 350 * UW

    def test_the_catalogues_watts_are_of_a_socket_and_its_dies_share_them(self, tmp_path: Path) -> None:
        tree, rapl = machine("intel-xeon-9242-dies", tmp_path, catalogue_max_w=300)
        for zone in tree.zones():
            tree.put(f"{zone}/constraint_1_max_power_uw", 0)
        assert run(rapl.discover()).max_w == 300
        assert wanted(rapl, 300, find(rapl))[knob("0", "constraint_1_power_limit_uw")] == 75 * UW

    def test_without_a_short_term_limit_the_long_term_one_is_enough(self, tmp_path: Path) -> None:
        tree, rapl = machine("intel-atom-c3758", tmp_path)
        put(rapl, rapl.settings(15, find(rapl)))
        assert tree.value(knob("0", LONG)) == 15 * UW

    @pytest.mark.parametrize("target_w", [200.0, 300.0, math.inf])
    def test_without_bursts_both_limits_are_the_same_and_hold_even_at_the_maximum(
        self, target_w: float, tmp_path: Path
    ) -> None:
        _, rapl = machine("intel-xeon-6148-dual", tmp_path)
        found = find(rapl)
        rapl.allows_bursts = False
        in_force = put(rapl, rapl.settings(target_w, found))
        each_uw = min(target_w, 300.0) / 2 * UW
        assert {in_force[knob(zone, limit)] for zone in "01" for limit in (LONG, SHORT)} == {each_uw}
        assert rapl.held(in_force, found) == min(target_w, 300.0)
        burst = {**in_force, knob("0", SHORT): 180 * UW}
        assert rapl.held(burst, found) == 180.0 + each_uw / UW
        rapl.allows_bursts = True
        assert put(rapl, rapl.restoring(found)) == found

    def test_a_short_term_limit_below_its_share_stays(self, tmp_path: Path) -> None:
        tree, rapl = machine("intel-xeon-6148-dual", tmp_path)
        tree.put(f"{INTEL_RAPL}/intel-rapl:0/{SHORT}", 100 * UW)
        assert wanted(rapl, 280, find(rapl))[knob("0", SHORT)] == 100 * UW

    def test_a_cap_is_never_above_what_was_found(self, tmp_path: Path) -> None:
        tree, rapl = machine("intel-xeon-6148-dual", tmp_path)
        tree.put(f"{INTEL_RAPL}/intel-rapl:0/{LONG}", 80 * UW)
        settings = wanted(rapl, 290, find(rapl))
        assert settings[knob("0", LONG)] == 80 * UW
        assert settings[knob("1", LONG)] == 145 * UW

    def test_limits_that_were_switched_off_are_switched_on_after_they_were_set(self, tmp_path: Path) -> None:
        tree, rapl = machine("intel-xeon-6530-dual", tmp_path, catalogue_max_w=270)
        settings = rapl.settings(324, find(rapl))
        assert [s.knob.attribute for s in settings[:3]] == [LONG, SHORT, "enabled"]
        put(rapl, settings)
        assert (tree.value(knob("1", LONG)), tree.value(knob("1", "enabled"))) == (162 * UW, 1)

    def test_a_found_limit_of_nothing_was_no_limit(self, tmp_path: Path) -> None:
        tree, rapl = machine("intel-xeon-6148-dual", tmp_path)
        tree.put(f"{INTEL_RAPL}/intel-rapl:0/{LONG}", 0)
        tree.put(f"{INTEL_RAPL}/intel-rapl:0/enabled", 0)
        assert wanted(rapl, 180, find(rapl))[knob("0", LONG)] == 90 * UW

    @pytest.mark.parametrize("target_w", [300.0, 5000.0, math.inf, math.nan])
    def test_the_maximum_and_more_and_no_number_mean_as_found(self, target_w: float, tmp_path: Path) -> None:
        _, rapl = machine("intel-xeon-6148-dual", tmp_path)
        found = find(rapl)
        assert wanted(rapl, target_w, found) == found

    def test_at_the_maximum_limits_that_were_off_stay_off(self, tmp_path: Path) -> None:
        _, rapl = machine("intel-xeon-6530-dual", tmp_path, catalogue_max_w=270)
        assert wanted(rapl, 540, find(rapl))[knob("1", "enabled")] == 0

    def test_a_limit_far_above_tdp_is_put_back_at_full_power(self, tmp_path: Path) -> None:
        tree, rapl = machine("intel-i9-13900hx", tmp_path)
        found = find(rapl)
        put(rapl, rapl.settings(0.6 * 55, found))
        assert tree.value(knob("0", LONG)) == 33 * UW
        put(rapl, rapl.settings(55, found))
        assert tree.value(knob("0", LONG)) == 135 * UW

    @pytest.mark.parametrize("target_w", [0.0, -1e9, -math.inf, 1e-9])
    def test_a_cap_that_makes_no_sense_stops_at_a_tenth(self, target_w: float, tmp_path: Path) -> None:
        _, rapl = machine("intel-xeon-6148-dual", tmp_path)
        assert wanted(rapl, target_w, find(rapl))[knob("0", LONG)] == 15 * UW

    def test_hardware_that_rounds_is_within_tolerance(self, tmp_path: Path) -> None:
        _, rapl = machine("intel-atom-c3758", tmp_path)
        setting = rapl.settings(15, find(rapl))[0]
        assert setting.tolerance == UW  # 1 % would be less than the watt that drift takes


class TestUnknownMaximum:
    def test_a_believable_limit_that_was_found_stands_in(self, tmp_path: Path) -> None:
        tree, rapl = machine("intel-atom-c3758", tmp_path)
        tree.put(f"{INTEL_RAPL}/intel-rapl:0/constraint_0_max_power_uw", 0)
        found = run(rapl.discover())
        assert (found.max_w, found.quality, found.no_control) == (25, "heuristic", None)
        assert "found" in found.warnings[0]

    def test_a_machine_that_is_capped_already_keeps_the_maximum_that_was_found(self, tmp_path: Path) -> None:
        tree = build("intel-atom-c3758", tmp_path)
        tree.file(f"{INTEL_RAPL}/intel-rapl:0/constraint_0_max_power_uw").unlink()
        journal: dict[Knob, Value] = {}
        rapl = Rapl(SysFs(tree.sys), Clock(), found=journal)
        journal.update(find(rapl))
        put(rapl, rapl.settings(15, journal))
        assert run(rapl.discover()).max_w == 25
        assert wanted(rapl, 20, journal)[knob("0", LONG)] == 20 * UW

    def test_without_any_hint_there_is_no_cap_in_watts(self, tmp_path: Path) -> None:
        tree, rapl = machine("intel-xeon-6530-dual", tmp_path)
        found = run(rapl.discover())
        assert (found.max_w, found.quality) == (None, "heuristic")
        assert found.no_control is not None
        assert "HARDWARE_CATALOG_PATH" in found.no_control
        with pytest.raises(NotSupportedError):
            run(rapl.knobs())
        with pytest.raises(NotSupportedError):
            rapl.settings(300, {knob("1", LONG): tree.value(knob("1", LONG))})

    def test_a_limit_and_a_maximum_of_zero_are_no_limit(self, tmp_path: Path) -> None:
        tree, rapl = machine("intel-atom-c3758", tmp_path, catalogue_max_w=25)
        for attribute in (LONG, "constraint_0_max_power_uw"):
            tree.put(f"{INTEL_RAPL}/intel-rapl:0/{attribute}", 0)
        with pytest.raises(NotSupportedError, match="no limit behind it"):
            run(rapl.knobs())


class TestVanishing:
    def test_the_packages_that_are_left_are_capped(self, tmp_path: Path) -> None:
        tree, rapl = machine("intel-xeon-6148-dual", tmp_path)
        found = find(rapl)
        tree.remove_zone("package-1")
        assert {s.knob.device[-1] for s in rapl.settings(90, found)} == {"0"}
        assert wanted(rapl, 90, found)[knob("0", LONG)] == 90 * UW
        with pytest.raises(NoDeviceError, match=r"intel-rapl:1.*does not exist"):
            run(rapl.read(knob("1", LONG)))
        with pytest.raises(NoDeviceError):
            run(rapl.write(knob("1", LONG), 1))

    def test_when_all_are_gone_that_is_an_error_not_an_empty_success(self, tmp_path: Path) -> None:
        tree, rapl = machine("intel-xeon-6148-dual", tmp_path)
        found = find(rapl)
        tree.remove_zone("package-*")
        with pytest.raises(NoDeviceError):
            rapl.settings(90, found)
        with pytest.raises(NoDeviceError):
            run(rapl.knobs())
        assert not run(rapl.discover()).present
        assert len(rapl.restoring(found)) == len(found), "what was found is still to be put back"
