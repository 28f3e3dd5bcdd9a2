"""`joulie demo replay`: the demo's work again without a clock, with Joulie and without, to check its claim."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from joulie.cli.demo_options import NumberRange, policy_option, seed_option
from joulie.cli.options import prints_result

if TYPE_CHECKING:
    from joulie.cli.output import Output

ALL = "all"

_EPILOG = """\b
Examples:
  joulie demo replay                       every scene, both ways, compared
  joulie demo replay --seed 8 --scene afternoon
  joulie demo replay --seeds 10            how much depends on the dice
  joulie demo replay --scene day --with -o json
  joulie demo replay --scene day --without --meter-until 3325
  CPU_ECO_CAP_PCT_OF_MAX=75 joulie demo replay
"""


@click.command(epilog=_EPILOG)
@seed_option
@click.option(
    "--scene", default=ALL, show_default=True, metavar="NAME", help="day, morning, afternoon, night or all of these."
)
@click.option("--with/--without", "joulie", default=None, help="Only with Joulie, or only without; else both.")
@click.option(
    "--seeds",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="So many days are compared: the scenes of the first seed, and the day (or the scene) of the next ones.",
)
@click.option(
    "--meter-until",
    "meter_until_s",
    type=NumberRange(0, 24 * 3600),
    default=0.0,
    metavar="SECONDS",
    help="With --with or --without: go on metering the idle nodes up to this time, as a comparison does.",
)
@policy_option
@prints_result
def command(
    seed: int, scene: str, joulie: bool | None, seeds: int, meter_until_s: float, policy: str | None, out: Output
) -> None:
    """The demo's energy with Joulie and without, at the same work.

    The pods of a scene come at the same times, on the same nodes, in the same weather, and all work is done to the
    end. A comparison meters both until both are done, for nodes that have nothing to do draw power, too, and is refused
    at unequal work. It steps simulated time as fast as it can; the same seed gives the same bits. Settings of operator
    and extender that are in the environment count.
    """
    from joulie.demo import summary
    from joulie.demo.day import SCENES, scene_named
    from joulie.demo.replay import Replay, compared
    from joulie.demo.tuning import replay_settings

    if seeds > 1 and joulie is not None:
        raise click.UsageError("--seeds compares, so it goes with neither --with nor --without")
    if meter_until_s and joulie is None:
        raise click.UsageError("--meter-until goes with --with or --without: a comparison finds its own time")
    scenes = list(SCENES.values()) if scene == ALL else [scene_named(scene)]
    operator, extender = replay_settings(os.environ, policy)
    if joulie is None:
        wanted = [(seed, one) for one in scenes] + [(seed + more, scenes[0]) for more in range(1, seeds)]
        comparisons = [compared(*one, operator, extender) for one in wanted]
        found: list[Any] = list(comparisons)
        lines = summary.comparison_lines(comparisons)
    else:
        replays = [Replay(seed, one, joulie=joulie, operator=operator, extender=extender) for one in scenes]
        results = [replay.run(meter_until_s) for replay in replays]
        found, lines = list(results), [line for result in results for line in summary.replayed_lines(result)]
    if out.for_people:
        click.echo("\n".join(lines))
    else:
        out.document(found if len(found) > 1 else found[0])
