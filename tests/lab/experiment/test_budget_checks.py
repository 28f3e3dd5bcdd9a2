"""What a file says about budgets is refused in one line with file and field, or it can be run."""

from __future__ import annotations

from pathlib import Path

import pytest

from joulie.errors import InputError
from joulie.lab.experiment.definition import parse_experiment

CLUSTER = "cluster.nodes = [{ count = 4 }]\ncluster.nodes_per_rack = 2\n"


def parsed(text: str) -> object:
    return parse_experiment(CLUSTER + text, "a.toml", Path()).cases


def test_a_budget_has_the_fields_of_a_power_budget_and_variants_override_some() -> None:
    text = (
        CLUSTER
        + """
[budgets.feed]
watts = 3000
groupBy = "joulie.io/rack"
groups = [{ value = "rack-1", watts = 2500, mode = "report" }]
windows = [{ days = ["Mon"], from = "17:00", to = "21:00", timeZone = "Europe/Berlin", watts = 1500 }]
[budgets.all]
watts = 3500
nodeSelector = { matchExpressions = [{ key = "joulie.io/rack", operator = "Exists" }] }
[variants]
shared = {}
static = { sharing.rule = "static", budgets.feed.watts = 2000 }
"""
    )
    shared, static = parse_experiment(text, "a.toml", Path()).cases
    assert (shared.setup.sharing.rule, static.setup.sharing.rule) == ("shared", "static")
    assert (shared.setup.budgets["feed"].watts, static.setup.budgets["feed"].watts) == (3000, 2000)
    assert static.setup.budgets["feed"].groups == shared.setup.budgets["feed"].groups
    assert shared.key(1) != static.key(1)


def test_nodes_may_have_labels_of_ones_own_to_group_them_by() -> None:
    nodes = 'cluster.nodes = [{ count = 2, labels = { row = "a" } }, { count = 2, labels = { row = "b" } }]\n'
    text = nodes + '[budgets.row]\nwatts = 1200\ngroupBy = "row"\n'
    assert parse_experiment(text, "a.toml", Path()).cases


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("budgets.feed = {}", "budgets.feed: Object missing required field `watts`"),
        ("budgets.feed.watts = 0", "budgets.feed.watts: Expected `float` > 0.0"),
        ("budgets.feed.watts = -5", "budgets.feed.watts: Expected `float` > 0.0"),
        ("budgets.feed.watts = nan", "budgets.feed.watts: "),
        ("budgets.feed.watts = inf", "budgets.feed.watts: "),
        ('budgets.feed.watts = "much"', "budgets.feed.watts: Expected `float`, got `str`"),
        ("budgets.feed.wats = 3000", "budgets.feed.wats: is not a field of a power budget; watts?"),
        (
            'budgets.feed = { watts = 3000, windows = [{ form = "17:00" }] }',
            "budgets.feed.windows[0].form: is not a field of a power budget; from?",
        ),
        (
            'budgets.feed = { watts = 3000, windows = [{ from = "25:00", to = "21:00", watts = 2000 }] }',
            "budgets.feed.windows[0].from: Expected `str` matching regex",
        ),
        (
            """budgets.feed.watts = 3000
            budgets.feed.windows = [{ from = "17:00", to = "21:00", watts = 2000, timeZone = "Mars" }]""",
            "budgets.feed: windows[0].timeZone: Mars is not known, so the window holds at all times",
        ),
        (
            'budgets.feed = { watts = 3000, signal = { query = "x", at = [{ value = 1, watts = 2000 }] } }',
            "budgets.feed.signal: there is nothing to query in the lab; use windows",
        ),
        (
            'budgets.feed = { watts = 3000, meter = { query = "x" } }',
            "budgets.feed.meter: there is nothing to query in the lab; use windows",
        ),
        (
            'budgets.feed = { watts = 3000, nodeSelector = { matchLabels = { row = "a" } } }',
            "budgets.feed: nodeSelector takes no node",
        ),
        (
            'budgets.feed = { watts = 3000, groupBy = "row" }',
            "budgets.feed: nodeSelector takes no node",
        ),
        (
            'budgets.feed = { watts = 3000, groupBy = "joulie.io/rack", groups = [{ value = "rack-7", watts = 9 }] }',
            "budgets.feed: groups: no node has joulie.io/rack=rack-7",
        ),
        (
            "budgets.feed.watts = 1000",
            "budgets.feed: the limit of 1,000 W is below 1,656 W, the least that its 4 nodes can be held to",
        ),
        (
            'budgets.feed = { watts = 1200, groupBy = "joulie.io/rack", groups = [{ value = "rack-1", watts = 500 }] }',
            "budgets.feed: the limit of group rack-1 of 500 W is below 828 W, the least that its 2 nodes can be held",
        ),
        ('sharing.rule = "fair"', "sharing.rule: Invalid enum value 'fair'"),
        ("sharing.interval_s = 1", "sharing.interval_s: 1 is not from 2 to 3600"),
        (
            'budgets.feed.watts = 3000\nsharing.rule = "reactive"\ntelemetry.source = "static"',
            'sharing.rule: reactive needs readings, and telemetry.source is "static"',
        ),
    ],
)
def test_what_cannot_be_run_is_refused_in_one_line_with_file_and_field(text: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        parsed(text)
    assert str(error.value).startswith(f"a.toml: {said}"), str(error.value)
    assert "\n" not in str(error.value)
