"""`joulie demo replay`: rerun the demo's work in simulated time, with and without Joulie, to check its claim."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from joulie.cli.demo.command import NumberRange, policy_option, seed_option
from joulie.cli.options import prints_result

if TYPE_CHECKING:
    from joulie.cli.output import Output

ALL = "all"

_EPILOG = """\b
Examples:
  joulie demo replay                       compare every scene with and without Joulie
  joulie demo replay --seed 8 --scene afternoon
  joulie demo replay --seeds 10            how much depends on chance
  joulie demo replay --scene feed-cut      a feed is cut by 30 %: does the limit hold, and what does it cost
  joulie demo replay --scene day --with -o json
  joulie demo replay --scene day --without --meter-until 3325
  CPU_ECO_CAP_PCT_OF_MAX=75 joulie demo replay
"""


@click.command(epilog=_EPILOG)
@seed_option
@click.option(
    "--scene",
    default=ALL,
    show_default=True,
    metavar="NAME",
    help="day, morning, afternoon, night or all of these; or feed-cut.",
)
@click.option("--with/--without", "joulie", default=None, help="Only with Joulie, or only without.  [default: both]")
@click.option(
    "--seeds",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="How many seeds to compare: all scenes of the first seed, and the day (or the scene) of the others.",
)
@click.option(
    "--meter-until",
    "meter_until_s",
    type=NumberRange(0, 24 * 3600),
    default=0.0,
    metavar="SECONDS",
    help="With --with or --without: keep metering the idle nodes up to this time, as a comparison does.",
)
@policy_option
@prints_result
def command(
    seed: int, scene: str, joulie: bool | None, seeds: int, meter_until_s: float, policy: str | None, out: Output
) -> None:
    """Compare the demo's energy with and without Joulie, for the same work.

    The pods of a scene arrive at the same times, on the same nodes, in the same weather, and all work is completed.
    A comparison meters both runs until both are done, because idle nodes draw power too, and is refused if the work
    differs. Simulated time runs as fast as possible; the same seed gives bit-identical results. Settings of operator
    and extender in the environment apply.

    The scene feed-cut asks something else: power budgets limit two feeds, one of them is cut by 30 % for five minutes,
    and the replays show whether the limits held at every step, what the same work draws without Joulie, and what the
    cut cost in speed beside the same scene without it.
    """
    from joulie.demo import summary
    from joulie.demo.replay.feed_cut import compared_cut
    from joulie.demo.replay.replay import Replay, compared
    from joulie.demo.scenario.day import COMPARED, FEED_CUT, scene_named
    from joulie.demo.settings import replay_settings

    if seeds > 1 and joulie is not None:
        raise click.UsageError("--seeds compares, so it cannot be combined with --with or --without")
    if meter_until_s and joulie is None:
        raise click.UsageError("--meter-until needs --with or --without: a comparison determines the time itself")
    scenes = list(COMPARED) if scene == ALL else [scene_named(scene)]
    if scenes == [FEED_CUT] and joulie is not None:
        raise click.UsageError("--scene feed-cut compares, so it cannot be combined with --with or --without")
    operator, extender = replay_settings(os.environ, policy)
    if scenes == [FEED_CUT]:
        cuts = [compared_cut(seed + more, operator, extender) for more in range(seeds)]
        found: list[Any] = list(cuts)
        lines = [line for one in cuts for line in summary.feed_cut_lines(one)]
    elif joulie is None:
        wanted = [(seed, one) for one in scenes] + [(seed + more, scenes[0]) for more in range(1, seeds)]
        comparisons = [compared(*one, operator, extender) for one in wanted]
        found = list(comparisons)
        lines = summary.comparison_lines(comparisons)
    else:
        replays = [Replay(seed, one, joulie=joulie, operator=operator, extender=extender) for one in scenes]
        results = [replay.run(meter_until_s) for replay in replays]
        found, lines = list(results), [line for result in results for line in summary.replayed_lines(result)]
    if out.for_people:
        click.echo("\n".join(lines))
    else:
        out.document(found if len(found) > 1 else found[0])
