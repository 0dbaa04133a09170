"""Name, options and help of every command. Imports none of the modules that do the work."""

from __future__ import annotations

from ragwatch.commands.options.export import export
from ragwatch.commands.options.labels import acknowledge, calibrate, label, open_answer, rejudge
from ragwatch.commands.options.privacy import audit, forget
from ragwatch.commands.options.retrieval import causes, diagnose, rollout
from ragwatch.commands.options.samples import canary, compare, gate, judge, redact
from ragwatch.commands.options.scores import backtest, estimate, plan
from ragwatch.commands.options.serving import check, demo, map_log, rules, run, store
from ragwatch.commands.options.setup import completion, config, init

COMMANDS = (
    run,
    demo,
    judge,
    canary,
    gate,
    compare,
    diagnose,
    causes,
    rollout,
    backtest,
    plan,
    estimate,
    acknowledge,
    open_answer,
    label,
    rejudge,
    calibrate,
    check,
    map_log,
    rules,
    redact,
    forget,
    audit,
    export,
    store,
    init,
    config,
    completion,
)

__all__ = ["COMMANDS"]
