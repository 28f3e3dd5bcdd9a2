"""The table of telemetry tiers: what holds for every tier, also for the next one."""

from __future__ import annotations

from importlib import import_module

import pytest

from joulie.model.tiers import MEASURED, TIER_NAMES, TIERS, Tier
from joulie.settings import OperatorSettings, load
from joulie.sources.assembly import power_reader
from joulie.sources.power.reader import PowerReader


def test_no_two_tiers_share_a_name_or_a_setting() -> None:
    settings = [tier.setting for tier in TIERS if tier.setting]
    assert len(set(TIER_NAMES)) == len(TIERS)
    assert len(set(settings)) == len(settings)


def test_measurements_come_before_estimates_and_static_is_last() -> None:
    assert [tier.name for tier in TIERS[: len(MEASURED)]] == list(MEASURED)
    assert TIER_NAMES[-1] == "static"


@pytest.mark.parametrize("tier", [tier for tier in TIERS if tier.reader], ids=lambda tier: str(tier.name))
def test_a_measured_tier_has_a_reader_that_its_setting_chooses(tier: Tier) -> None:
    module, _, name = tier.reader.partition(":")
    reader = getattr(import_module(module), name)
    assert isinstance(reader, PowerReader)
    assert power_reader(load(OperatorSettings, {"OPERATOR_NODE_POWER_SOURCE": tier.setting})) is reader


def test_nothing_is_measured_by_default() -> None:
    assert power_reader(load(OperatorSettings, {})) is None
