"""The table of score terms: what holds for every term, also for the next one."""

from __future__ import annotations

import numpy as np
import pytest

from joulie.control.scoring import FOR_ALL, TERMS, ClusterFacts, NodeFacts, Term, facts_at

CLUSTERS = (ClusterFacts(0.0, 0.0), ClusterFacts(40.0, -120.0), ClusterFacts(100.0, 900.0))


def some_nodes(seed: int) -> NodeFacts:
    chance = np.random.default_rng(seed)
    capped_w = chance.uniform(0.0, 5_000.0, 200)
    return NodeFacts(
        class_code=chance.integers(0, 4, 200).astype(np.int8),
        capped_w=capped_w,
        measured_w=capped_w * chance.uniform(0.0, 1.2, 200),
        predicted_headroom=chance.uniform(0.0, 100.0, 200),
        cooling_stress=chance.uniform(0.0, 100.0, 200),
        trend_w_per_min=chance.normal(0.0, 100.0, 200),
        pue=chance.uniform(1.0, 2.0, 200),
    )


def test_no_two_terms_share_a_name() -> None:
    assert len({term.name for term in TERMS}) == len({term.key for term in TERMS}) == len(TERMS)


def test_terms_that_every_pod_gets_come_first() -> None:
    assert [term.standard_only for term in TERMS] == [False] * FOR_ALL + [True] * (len(TERMS) - FOR_ALL)
    assert FOR_ALL > 0


@pytest.mark.parametrize("term", TERMS, ids=lambda term: str(term.name))
@pytest.mark.parametrize("cluster", CLUSTERS)
class TestEveryTerm:
    def test_gives_finite_points_within_the_score(self, term: Term, cluster: ClusterFacts) -> None:
        points = term.points(some_nodes(1), cluster)
        assert points.shape == (200,)
        assert np.isfinite(points).all()
        assert np.abs(points).max() <= 100

    def test_gives_one_node_what_it_gives_it_among_all(self, term: Term, cluster: ClusterFacts) -> None:
        nodes = some_nodes(2)
        together = term.points(nodes, cluster)
        alone = [float(term.points(facts_at(nodes, row), cluster)) for row in range(200)]
        assert together.tobytes() == np.array(alone).tobytes()

    def test_says_its_reason_without_a_gap(self, term: Term, cluster: ClusterFacts) -> None:
        here = facts_at(some_nodes(4), 0)
        words = term.words.format(best=here, other=here, cluster=cluster)
        assert words.strip()
        assert "{" not in words
        assert not words.endswith(".")
