from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from joulie.errors import InputError
from joulie.lab.analysis.claims import Claim, broken_claims
from joulie.lab.analysis.compare import Comparison, Entry, compare
from joulie.lab.analysis.verdicts import worst_end_pct
from tests.lab.made import made_measures
from tests.lab.small import SMALL, small_experiment

SEEDS = range(20)


def comparison(facet: str, energy: float) -> Comparison:
    rng = np.random.default_rng(1)
    wobble = rng.normal(0, 0.5, (2, len(SEEDS)))
    runs = {
        name: {seed: Entry(made_measures(mean + wobble[place, seed]), f"jobs {seed}") for seed in SEEDS}
        for place, (name, mean) in enumerate({"none": 100.0, "eco": energy}.items())
    }
    return compare(runs, "none", facet)


SAVES = [comparison("load=0.3", 95.0), comparison("load=0.6", 90.0)]


@pytest.mark.parametrize(
    "claim",
    [
        Claim(variant="eco", side="lower"),
        Claim(variant="eco", side="lower", facet="load=0.6", between_pct=(-11, -9)),
        Claim(variant="eco", side="no significant difference", measure="slowdown_p99"),
        Claim(variant="eco", side="not inferior", measure="slowdown_p99", margin_pct=0),
        Claim(variant="eco", side="not inferior"),
    ],
)
def test_a_claim_that_follows_from_the_numbers_holds(claim: Claim) -> None:
    assert broken_claims([claim], SAVES) == []


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        (
            Claim(variant="eco", side="higher", facet="load=0.3"),
            "load=0.3: eco: facility_kwh is claimed to be: higher; the runs say: lower (-",
        ),
        (
            Claim(variant="eco", side="lower", measure="slowdown_p99", facet="load=0.3"),
            "is claimed to be: lower; the runs say: no significant difference",
        ),
        (
            Claim(variant="eco", side="lower", facet="load=0.3", between_pct=(-11, -9)),
            "is claimed to change by -11 to -9 %; the runs say: -",
        ),
        (Claim(variant="none", side="lower", facet="load=0.3"), "there is no difference in facility_kwh to claim"),
        (Claim(variant="eco", side="lower", facet="load=0.9"), "there is no difference in facility_kwh to claim"),
    ],
)
def test_a_claim_that_does_not_follow_says_why(claim: Claim, said: str) -> None:
    (broken,) = broken_claims([claim], SAVES)

    assert said in broken


def test_not_inferior_means_that_no_end_of_the_interval_is_worse_than_the_margin() -> None:
    """100 to 103 with a spread of half a unit: surely within 5 %, not within 3 %; less is worse of throughput."""
    worse = comparison("", 103.0)
    (difference,) = (one.differences["facility_kwh"] for one in worse.variants[1:])
    assert difference.relative_high_pct is not None
    assert broken_claims([Claim(variant="eco", side="not inferior")], [worse]) == []
    (said,) = broken_claims([Claim(variant="eco", side="not inferior", margin_pct=3)], [worse])
    assert said == (
        "eco: facility_kwh is claimed to be no more than 3 % worse; the runs say: "
        f"up to {difference.relative_high_pct:.1f} % worse"
    )
    less = replace(difference, measure="gpu_throughput")
    assert worst_end_pct(less) == pytest.approx(-(difference.relative_low_pct or 0.0))


def test_an_experiment_s_file_holds_claims() -> None:
    claims = "claims = [{ variant = 'capped', is = 'lower', between_pct = [-20, -5] }]\n"

    assert small_experiment(claims + SMALL).claims == (
        Claim(variant="capped", side="lower", between_pct=(-20.0, -5.0)),
    )
    with pytest.raises(InputError, match=r"small\.toml: claims: there is no variant 'caped': there are full, capped"):
        small_experiment(claims.replace("capped", "caped") + SMALL)
    with pytest.raises(InputError, match=r"small\.toml: claims\[0\]\.is: Invalid enum value 'less'"):
        small_experiment(claims.replace("lower", "less") + SMALL)
