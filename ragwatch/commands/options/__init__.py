"""Name, options and help of every command, in the groups of `ragwatch --help`. Imports no module that does the work."""

from __future__ import annotations

from collections.abc import Mapping

import click

from ragwatch.commands.options import administration, looking, offline, people, running
from ragwatch.commands.options.lazy import Arguments, LazyCommand, import_and_call


@click.pass_context
def _run_canaries(context: click.Context, /, **values: object) -> object:
    if context.invoked_subcommand is not None:
        return 0
    if values["path"] is None:
        raise click.UsageError("Missing option '--config'.", context)
    return import_and_call(offline.CanaryArguments, values)


def _group(name: str, text: str, commands: Mapping[str, type[Arguments]]) -> click.Group:
    return click.Group(name, help=text, commands=_commands(commands))


def _commands(table: Mapping[str, type[Arguments]]) -> list[click.Command]:
    return [LazyCommand(name, arguments) for name, arguments in table.items()]


_RUNNING = {
    "init": running.InitArguments,
    "check": running.CheckArguments,
    "run": running.RunArguments,
    "demo": running.DemoArguments,
    "map": running.MapArguments,
}
_LOOKING = {
    "causes": looking.CausesArguments,
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
    "Set up and run": _commands(_RUNNING),
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
