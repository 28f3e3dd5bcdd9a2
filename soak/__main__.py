"""`python -m soak --minutes 30`: random faults against everything, and a table of what was seen."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from random import SystemRandom

import click
from rich.console import Console
from rich.table import Table

from soak.faults import FAULTS
from soak.rounds import Result, soak
from soak.scene import Scene
from soak.state_folders import IN_NAMESPACE


@click.command()
@click.option("--minutes", default=2.0, show_default=True, help="Play faults for at least so long.")
@click.option("--faults", default=0, show_default=True, help="Play at least so many faults, however long it takes.")
@click.option("--seed", type=int, help="Repeat the same choice of faults. [default: another one each time]")
@click.option("--only", "parts", multiple=True, metavar="TEXT", help="Only faults with this in their name; repeatable.")
@click.option("--quiet", is_flag=True, help="Print the table alone.")
def main(minutes: float, faults: int, seed: int | None, parts: tuple[str, ...], quiet: bool) -> None:
    """Run every process of Joulie on a real API server, play random faults, and check invariants from outside.

    Needs root for full and read-only state folders, which are skipped without.
    """
    kinds = [fault for fault in FAULTS if not parts or any(part in fault.name for part in parts)]
    if not kinds:
        raise click.UsageError(f"--only: no fault has any of these in its name: {', '.join(parts)}")
    console = Console(soft_wrap=True)
    seed = SystemRandom().randrange(1 << 31) if seed is None else seed
    began_s = time.monotonic()

    def say(what: str) -> None:
        if not quiet:
            console.print(f"{time.monotonic() - began_s:7.1f} s  {what}", highlight=False, markup=False)

    say(f"seed {seed}")
    with Scene(say) as scene:
        until_s = time.monotonic() + 60 * minutes
        result = soak(scene, seed, until_s=until_s, at_least=faults, say=say, kinds=kinds)
    show(console, result, (time.monotonic() - began_s) / 60)
    sys.exit(1 if result.violations else 0)


def show(console: Console, result: Result, minutes: float) -> None:
    table = Table(title=f"{result.faults} faults in {minutes:.0f} minutes, seed {result.seed}")
    for heading in ("fault", "played", "skipped", "worst time to settle", "violations"):
        table.add_column(heading, justify="left" if heading == "fault" else "right")
    for name in sorted(result.played.keys() | result.skipped.keys()):
        worst_s = result.worst_settle_s.get(name)
        table.add_row(
            name,
            str(result.played[name]),
            str(result.skipped[name] or ""),
            "" if worst_s is None else f"{worst_s:.1f} s",
            str(result.violated_by[name] or ""),
        )
    console.print(table)
    settled = sorted(result.settle_s)
    console.print(
        f"{len(settled)} rounds; all was well again after {settled[len(settled) // 2]:.1f} s (median), "
        f"{settled[-1]:.1f} s (worst); devices looked at {result.looks} times, "
        f"{result.capped / max(1, result.looks):.1f} of them capped on average"
    )
    for violation in result.violations:
        console.print(f"VIOLATED {violation}", style="red", markup=False)
    verdict = f"{len(result.violations)} violations" if result.violations else "no invariant was violated"
    console.print(f"{result.faults} faults played, {verdict}")


def in_own_namespace() -> None:
    """Again with mounts of our own, which end with us, where that is allowed."""
    unshare = shutil.which("unshare")
    if IN_NAMESPACE in os.environ or unshare is None or os.geteuid() != 0:
        return
    private = [unshare, "--mount", "--propagation", "private"]
    if subprocess.run([*private, "true"], check=False, capture_output=True).returncode == 0:
        os.environ[IN_NAMESPACE] = "1"
        os.execv(unshare, [*private, sys.executable, "-m", "soak", *sys.argv[1:]])


if __name__ == "__main__":
    in_own_namespace()
    main()
