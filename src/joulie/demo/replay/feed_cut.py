"""The cut of a feed replayed: with Joulie, with Joulie and no cut, and without Joulie. The same seed, the same bits."""

from __future__ import annotations

from msgspec import Struct

from joulie.demo.replay.feed_schedule import FeedSchedule
from joulie.demo.replay.replay import STEP_S, Replay, ReplayError
from joulie.demo.replay.results import Replayed
from joulie.demo.scenario.day import FEED_CUT
from joulie.demo.scenario.feed_meter import FeedCut
from joulie.settings import ExtenderSettings, OperatorSettings


class FeedCutComparison(Struct, frozen=True, rename="camel"):
    """What a cut did, and what it cost beside the same work without it."""

    scene: str
    seed: int
    step_s: float
    cut: FeedCut
    worst_margin_w: dict[str, float]  # of each feed and of the cluster: limit in force less what is drawn at the wall
    without_joulie: FeedCut  # nothing is capped: what the same work would have drawn
    with_cut: Replayed
    without_cut: Replayed


def compared_cut(seed: int, operator: OperatorSettings, extender: ExtenderSettings) -> FeedCutComparison:
    """Three replays of the scene, each to the end of its work."""

    def replay(*, joulie: bool, with_cut: bool) -> Replay:
        schedule = FeedSchedule(FEED_CUT, with_cut)
        return Replay(seed, FEED_CUT, joulie=joulie, operator=operator, extender=extender, feeds=schedule)

    cut, plain = replay(joulie=True, with_cut=True), replay(joulie=True, with_cut=False)
    bare = replay(joulie=False, with_cut=True)
    with_cut, without_cut = cut.run(), plain.run()
    bare.run()
    if cut.meter is None or bare.meter is None or not cut.meter.cuts or not bare.meter.cuts:
        raise ReplayError("the work was done before the cut was over")
    return FeedCutComparison(
        scene=FEED_CUT.name,
        seed=seed,
        step_s=STEP_S,
        cut=cut.meter.cuts[0],
        worst_margin_w=cut.meter.worst_margin_w,
        without_joulie=bare.meter.cuts[0],
        with_cut=with_cut,
        without_cut=without_cut,
    )
