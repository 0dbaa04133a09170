"""Numbers on the command line."""

from __future__ import annotations

import math

import click


class FiniteRange(click.FloatRange):
    """A range of numbers that holds neither nan nor inf: `click.FloatRange` lets nan through every bound."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """See `click.ParamType.convert`."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number; write one such as 0.5", param, ctx)
        return number
