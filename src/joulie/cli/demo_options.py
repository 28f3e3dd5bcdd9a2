"""Options that the live demo and its replay share."""

from __future__ import annotations

import math
from typing import Any

import click


class NumberRange(click.FloatRange):
    """A range that `nan` is outside of: it compares with nothing, so no bound would refuse it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is no number", param, ctx)
        return number


seed_option = click.option(
    "--seed", type=click.IntRange(0, 2**31 - 1), default=7, show_default=True, help="Which pods come when."
)
policy_option = click.option("--policy", metavar="NAME", help="The policy that plans.  [default: queue_aware_v1]")
