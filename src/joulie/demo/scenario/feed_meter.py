"""What the plant shows of the feeds: whether limits hold at every step, and what a cut does. Pure."""

from __future__ import annotations

import math
from collections import deque

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from joulie.control.budget.envelopes import GPU_OVERSHOOT, GPU_REST_PER_W, GPU_REST_SHARE, OTHER_REST_SHARE
from joulie.demo.scenario.feeds import CLUSTER_BUDGET, CLUSTER_W, CUT_FEED, CUT_W, FEED_LABEL, FEED_W, FEEDS
from joulie.demo.scenario.machines import node_manifests
from joulie.demo.scenario.progress import Progress
from joulie.plant.curves import Numbers
from joulie.simulator.simulation import Simulation

BEFORE_S = 100.0  # how long before a cut the speed is averaged that it is compared with


class FeedCut(Struct, frozen=True, rename="camel"):
    """One cut of a feed as the plant showed it; times are simulated. None: it was not seen to happen."""

    feed: str
    limit_before_w: float
    limit_w: float
    lasted_s: float  # from the edit until the limit was back, or until now
    is_over: bool
    in_force_s: float | None  # until the caps that devices hold fit below the new limit
    above_s: float  # drew more than the new limit, all of it before that limit was in force unless a margin is negative
    drawn_before_w: float  # at the wall
    highest_w: float  # at the wall, from the edit on
    worst_margin_w: float | None  # the new limit less what was drawn at the wall, once it was in force
    shared_again_s: float | None  # after the end, until caps add up to more than the cut allowed
    speed_before: float | None  # of the feed's pods over uncapped, in the BEFORE_S before
    speed_during: float | None


class _Mean:
    """A mean over time."""

    def __init__(self) -> None:
        self._sum = self._time_s = 0.0

    def add(self, value: float | None, dt_s: float) -> None:
        if value is not None:
            self._sum += value * dt_s
            self._time_s += dt_s

    @property
    def value(self) -> float | None:
        return self._sum / self._time_s if self._time_s else None


class FeedMeter:
    """Sampled after each step. A limit that falls counts as soon as the caps of devices fit below it."""

    def __init__(self, simulation: Simulation, progress: Progress) -> None:
        self.worst_margin_w = {**dict.fromkeys(FEEDS, math.inf), CLUSTER_BUDGET: math.inf}
        self.cuts: list[FeedCut] = []  # those that are over
        self._simulation, self._progress = simulation, progress
        labels = {each["metadata"]["name"]: each["metadata"]["labels"][FEED_LABEL] for each in node_manifests()}
        self._nodes = {feed: {name for name in labels if labels[name] == feed} for feed in FEEDS}
        self._rows: dict[str, NDArray[np.intp]] = {
            feed: np.array([simulation.index[name] for name in sorted(names)]) for feed, names in self._nodes.items()
        }
        self._before: deque[tuple[float, float | None]] = deque()  # speeds, with the length of their steps
        self._began_s: float | None = None
        self._ended_s: float | None = None  # of the last cut, until watts are shared again
        self._in_force_s: float | None = None
        self._above_s = self._highest_w = self._drawn_before_w = 0.0
        self._margin_w: float | None = None
        self._speed_before: float | None = None
        self._during = _Mean()

    def wall_w(self, feed: str) -> float:
        """What a meter at the feed shows, mean of the last step."""
        return float(self._simulation.fleet.node_w[self._rows[feed]].sum())

    def allowed_w(self, feed: str) -> float:
        """The most that its nodes may draw under the caps that devices hold, counted as budgets count."""
        fleet = self._simulation.fleet
        boards_w = fleet.by_node(fleet.gpus.max_w)
        rest_w = np.where(boards_w > 0, GPU_REST_SHARE * boards_w, OTHER_REST_SHARE * fleet.cpus.max_w)
        gpu_w = fleet.by_node(fleet.gpus.cap_target_w) * (GPU_OVERSHOOT + GPU_REST_PER_W)
        node_w: Numbers = fleet.cpus.cap_target_w + gpu_w + rest_w
        return float(node_w[self._rows[feed]].sum())

    def limit_w(self, feed: str) -> float:
        return CUT_W if feed == CUT_FEED and self._in_force_s is not None else FEED_W

    @property
    def is_in_force(self) -> bool:
        return self._in_force_s is not None

    def cut(self, now_s: float) -> None:
        """The limit is lowered at this moment."""
        self._began_s, self._ended_s, self._in_force_s = now_s, None, None
        self._above_s, self._highest_w, self._margin_w = 0.0, 0.0, None
        self._drawn_before_w = self.wall_w(CUT_FEED)
        mean = _Mean()
        for dt_s, speed in self._before:
            mean.add(speed, dt_s)
        self._speed_before, self._during = mean.value, _Mean()

    def look(self, now_s: float) -> None:
        """At the caps alone, which change between steps, too."""
        if self._began_s is not None and self._in_force_s is None and self.allowed_w(CUT_FEED) <= CUT_W:
            self._in_force_s = now_s - self._began_s
        if self._ended_s is not None and self.allowed_w(CUT_FEED) > CUT_W:
            self.cuts[-1] = replace(self.cuts[-1], shared_again_s=now_s - self._ended_s)
            self._ended_s = None

    def step(self, now_s: float, dt_s: float) -> None:
        """The plant has made a step that ended now."""
        was_in_force = self.is_in_force
        self.look(now_s)
        speed = self._progress.mean_speed(self._nodes[CUT_FEED])
        drawn_w = {feed: self.wall_w(feed) for feed in FEEDS}
        if self._began_s is not None:
            self._during.add(speed, dt_s)
            self._above_s += dt_s if drawn_w[CUT_FEED] > CUT_W else 0.0
            self._highest_w = max(self._highest_w, drawn_w[CUT_FEED])
            if was_in_force:
                margin_w = CUT_W - drawn_w[CUT_FEED]
                self._margin_w = margin_w if self._margin_w is None else min(self._margin_w, margin_w)
        else:
            self._before.append((dt_s, speed))
            while sum(each_s for each_s, _ in self._before) > BEFORE_S:
                self._before.popleft()
        for feed, watts in drawn_w.items():
            # In the step in which a cut comes into force the old limit still counts.
            limit_w = FEED_W if feed == CUT_FEED and not was_in_force else self.limit_w(feed)
            self.worst_margin_w[feed] = min(self.worst_margin_w[feed], limit_w - watts)
        margin_w = CLUSTER_W - sum(drawn_w.values())
        self.worst_margin_w[CLUSTER_BUDGET] = min(self.worst_margin_w[CLUSTER_BUDGET], margin_w)

    def give_back(self, now_s: float) -> FeedCut | None:
        """The limit is back at this moment; what the cut was."""
        found = self.cut_now(now_s, is_over=True)
        if found is not None:
            self.cuts.append(found)
            self._ended_s = now_s if self.is_in_force else None  # else there is nothing to be shared again
            self._began_s, self._in_force_s = None, None
            self._before.clear()
        return found

    def cut_now(self, now_s: float, *, is_over: bool = False) -> FeedCut | None:
        """The cut that is going on, as far as it is seen."""
        if self._began_s is None:
            return None
        return FeedCut(
            feed=CUT_FEED,
            limit_before_w=FEED_W,
            limit_w=CUT_W,
            lasted_s=now_s - self._began_s,
            is_over=is_over,
            in_force_s=self._in_force_s,
            above_s=self._above_s,
            drawn_before_w=self._drawn_before_w,
            highest_w=self._highest_w,
            worst_margin_w=self._margin_w,
            shared_again_s=None,
            speed_before=self._speed_before,
            speed_during=self._during.value,
        )
