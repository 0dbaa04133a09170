"""The command line: one module per command, whose options and help are in `terminal.options`.

A command's module is imported only when the command runs.
"""

from collections.abc import Mapping
from pathlib import Path

import click

from ragwatch import __version__
from ragwatch.terminal.options import LazyCommand, administration, config_file, import_and_call, offline, people


@click.pass_context
def _run_canaries(context: click.Context, /, **values: object) -> object:
    if context.invoked_subcommand is not None:
        return 0
    path = values.pop("path")
    assert path is None or isinstance(path, Path)  # noqa: S101 - for the type checker
    return import_and_call(offline.CanaryArguments, {**values, "path": config_file(context, None, path)})


def _group(name: str, text: str, *commands: click.Command) -> click.Group:
    return click.Group(name, help=text, commands=commands)


_CANARY = click.Group(
    "canary",
    callback=_run_canaries,
    params=offline.CanaryArguments.parameters(),
    help=offline.CanaryArguments.__doc__,
    invoke_without_command=True,
    commands=[LazyCommand("suggest", offline.SuggestArguments)],
)
_DETECTOR = _group(
    "detector",
    "Get models for judges of kind `detector`.",
    LazyCommand("fetch", administration.DetectorFetchArguments),
    LazyCommand("quantise", administration.DetectorQuantiseArguments),
)
_STORE = _group(
    "store",
    "Work with the store (key `store`).",
    LazyCommand("copy", administration.StoreCopyArguments),
    LazyCommand("views", administration.StoreViewsArguments),
)
_AUDIT = _group(
    "audit", "Work with audit logs (key `audit.file`).", LazyCommand("verify", administration.AuditVerifyArguments)
)
_CONFIG = _group(
    "config", "Work with the configuration file.", LazyCommand("schema", administration.ConfigSchemaArguments)
)
GROUPS: Mapping[str, Mapping[click.Command, str]] = {
    "Set up and run": {
        LazyCommand(
            "init", administration.InitArguments
        ): "Write a configuration for the log of a service, and test it.",
        LazyCommand("check", administration.CheckArguments): "Test a configuration and what it refers to.",
        LazyCommand("run", administration.RunArguments): "Watch the sources and serve /metrics and pages.",
        LazyCommand("demo", administration.DemoArguments): "Watch a small RAG service that breaks on demand.",
        LazyCommand("map", administration.MapArguments): "",
        _DETECTOR: "Download a model for a judge, or make it smaller.",
    },
    "Look": {
        LazyCommand("status", people.StatusArguments): "Show on one screen how answers are now.",
        LazyCommand("causes", people.CausesArguments): "Find what failing answers have in common.",
        LazyCommand("mcp", people.McpArguments): "Answer an assistant from a running ragwatch.",
        LazyCommand("incident", people.IncidentArguments): "Write an incident as a file, for a ticket.",
        LazyCommand("open", people.OpenArguments): "Print the address of the worst answer.",
        LazyCommand("acknowledge", people.AcknowledgeArguments): "Acknowledge drift alarms.",
    },
    "People": {
        LazyCommand("label", people.LabelArguments): "Label answers, or the relevance of contexts.",
        LazyCommand("calibrate", people.CalibrateArguments): "Compare a judge with the labels.",
        LazyCommand("rejudge", people.RejudgeArguments): "Have stored answers read by another judge.",
    },
    "Offline": {
        LazyCommand("judge", offline.JudgeArguments): "Judge the samples in files, a verdict per line.",
        LazyCommand("estimate", offline.EstimateArguments): "Compute means and levels from verdicts.",
        LazyCommand("gate", offline.GateArguments): "Compare judged samples with thresholds, for CI.",
        LazyCommand("compare", offline.CompareArguments): "Compare two variants on the same questions.",
        LazyCommand("rollout", offline.RolloutArguments): "Decide in three stages whether a variant may go live.",
        LazyCommand("diagnose", offline.DiagnoseArguments): "Make the checklist for debugging retrieval.",
        LazyCommand("plan", offline.PlanArguments): "Show cost and detection delay by sampling rate.",
        LazyCommand("backtest", offline.BacktestArguments): "Replay past scores through the drift detectors.",
        LazyCommand("export", offline.ExportArguments): "Write verdicts to Parquet, or failing answers as tests.",
        _CANARY: "Run the canaries once, or propose new ones.",
    },
    "Administration": {
        _STORE: "Copy a store, or make views of it.",
        LazyCommand("forget", administration.ForgetArguments): "Erase a person from the state.",
        LazyCommand("redact", administration.RedactArguments): "Show what redaction takes from a text.",
        LazyCommand("rules", administration.RulesArguments): "Write Prometheus rules and dashboards.",
        LazyCommand("completion", administration.CompletionArguments): "Print the completion script of a shell.",
        _AUDIT: "Verify audit logs.",
        _CONFIG: "Print the JSON schema of the configuration.",
    },
}
"""The commands by the headings of `ragwatch --help`, each with its line there, short enough for 80 characters."""


class _Grouped(click.Group):
    """A group that lists its commands under headings."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the signature of click
        """Return the names in the order of the table."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - the same
        """Write one list for each heading."""
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(str(command.name), line) for command, line in commands.items() if line])


@click.group(cls=_Grouped, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="ragwatch")
def cli() -> None:
    """Monitor the answer quality of a RAG service in production and export it to Prometheus.

    Exit codes: 0 success, 1 the check failed or an error occurred, 2 usage or configuration error, 3 not enough data,
    130 interrupted (Ctrl-C). Those of `rollout` are in its help. If the reader of the output goes away (`| head`), the
    code is 1.
    """


for commands in GROUPS.values():
    for command in commands:
        cli.add_command(command)
