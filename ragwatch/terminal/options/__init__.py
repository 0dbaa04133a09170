"""Name, options and help of every command, in the groups of `ragwatch --help`. Imports no module that does the work."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from ragwatch.terminal.options import administration, looking, offline, people, running
from ragwatch.terminal.options.lazy import Arguments, LazyCommand, config_file, import_and_call


@click.pass_context
def _run_canaries(context: click.Context, /, **values: object) -> object:
    if context.invoked_subcommand is not None:
        return 0
    path = values.pop("path")
    assert path is None or isinstance(path, Path)  # noqa: S101 - for the type checker
    return import_and_call(offline.CanaryArguments, {**values, "path": config_file(context, None, path)})


def _group(name: str, text: str, commands: Mapping[str, type[Arguments]]) -> click.Group:
    return click.Group(name, help=text, commands=_commands(commands))


def _commands(table: Mapping[str, type[Arguments]]) -> list[click.Command]:
    return [LazyCommand(name, arguments) for name, arguments in table.items()]


SUMMARIES = {
    "init": "Write a configuration for the log of a service, and test it.",
    "check": "Test a configuration and what it refers to.",
    "run": "Watch the sources and serve /metrics and pages.",
    "demo": "Watch a small RAG service that breaks on demand.",
    "detector": "Download a model for a judge.",
    "status": "Show on one screen how answers are now.",
    "causes": "Find what failing answers have in common.",
    "mcp": "Answer an assistant from a running ragwatch.",
    "incident": "Write an incident as a file, for a ticket.",
    "open": "Print the address of the worst answer.",
    "acknowledge": "Acknowledge drift alarms.",
    "label": "Label answers, or the relevance of contexts.",
    "calibrate": "Compare a judge with the labels.",
    "rejudge": "Have stored answers read by another judge.",
    "judge": "Judge the samples in files, a verdict per line.",
    "estimate": "Compute means and levels from verdicts.",
    "gate": "Compare judged samples with thresholds, for CI.",
    "compare": "Compare two variants on the same questions.",
    "rollout": "Decide in three stages whether a variant may go live.",
    "diagnose": "Make the checklist for debugging retrieval.",
    "plan": "Show cost and detection delay by sampling rate.",
    "backtest": "Replay past scores through the drift detectors.",
    "export": "Write verdicts to Parquet, or failing answers as tests.",
    "canary": "Run the canaries once, or propose new ones.",
    "store": "Copy a store, or make views of it.",
    "forget": "Erase a person from the state.",
    "redact": "Show what redaction takes from a text.",
    "rules": "Write Prometheus rules and dashboards.",
    "completion": "Print the completion script of a shell.",
    "audit": "Verify audit logs.",
    "config": "Print the JSON schema of the configuration.",
}
"""A line on each command for `ragwatch --help`, short enough for 80 characters."""

_RUNNING = {
    "init": running.InitArguments,
    "check": running.CheckArguments,
    "run": running.RunArguments,
    "demo": running.DemoArguments,
    "map": running.MapArguments,
}
_LOOKING = {
    "status": looking.StatusArguments,
    "causes": looking.CausesArguments,
    "mcp": looking.McpArguments,
    "incident": looking.IncidentArguments,
    "open": looking.OpenArguments,
    "acknowledge": looking.AcknowledgeArguments,
}
_PEOPLE = {
    "label": people.LabelArguments,
    "calibrate": people.CalibrateArguments,
    "rejudge": people.RejudgeArguments,
}
_OFFLINE = {
    "judge": offline.JudgeArguments,
    "estimate": offline.EstimateArguments,
    "gate": offline.GateArguments,
    "compare": offline.CompareArguments,
    "rollout": offline.RolloutArguments,
    "diagnose": offline.DiagnoseArguments,
    "plan": offline.PlanArguments,
    "backtest": offline.BacktestArguments,
    "export": offline.ExportArguments,
}
_STORE = {"copy": administration.StoreCopyArguments, "views": administration.StoreViewsArguments}
_ADMINISTRATION = {
    "forget": administration.ForgetArguments,
    "redact": administration.RedactArguments,
    "rules": administration.RulesArguments,
    "completion": administration.CompletionArguments,
}
_CANARY = click.Group(
    "canary",
    callback=_run_canaries,
    params=offline.CanaryArguments.parameters(),
    help=offline.CanaryArguments.__doc__,
    invoke_without_command=True,
    commands=[LazyCommand("suggest", offline.SuggestArguments)],
)
GROUPS: Mapping[str, list[click.Command]] = {
    "Set up and run": [
        *_commands(_RUNNING),
        _group("detector", "Get models for judges of kind `detector`.", {"fetch": running.DetectorFetchArguments}),
    ],
    "Look": _commands(_LOOKING),
    "People": _commands(_PEOPLE),
    "Offline": [*_commands(_OFFLINE), _CANARY],
    "Administration": [
        _group("store", "Work with the store (key `store`).", _STORE),
        *_commands(_ADMINISTRATION),
        _group("audit", "Work with audit logs (key `audit.file`).", {"verify": administration.AuditVerifyArguments}),
        _group("config", "Work with the configuration file.", {"schema": administration.ConfigSchemaArguments}),
    ],
}
