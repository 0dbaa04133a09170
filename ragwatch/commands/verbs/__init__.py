"""Verbs: the name, the options and the help of every command. Nothing here imports what a command needs to run."""

from __future__ import annotations

from ragwatch.commands.verbs.figures import backtest, plan
from ragwatch.commands.verbs.people import acknowledge, calibrate, label
from ragwatch.commands.verbs.samples import canary, compare, gate, judge
from ragwatch.commands.verbs.serving import check, demo, map_log, rules, run

VERBS = (
    run,
    demo,
    judge,
    canary,
    gate,
    compare,
    backtest,
    plan,
    acknowledge,
    label,
    calibrate,
    check,
    map_log,
    rules,
)

__all__ = ["VERBS"]
