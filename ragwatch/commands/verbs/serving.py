"""Serving: the commands around the daemon: run, demo, check, map, rules."""

from __future__ import annotations

from pathlib import Path

import click

from ragwatch.commands.verbs.deferred import CONFIG, lazy_command

LLM_JUDGES = ("claude", "openai")


@lazy_command("ragwatch.commands.run:run")
@click.option("--config", "path", type=CONFIG, required=True, help="Configuration file (YAML).")
@click.option("--once", is_flag=True, help="Read what is there, judge it, print /metrics text and end.")
@click.option(
    "--state", type=CONFIG, help="With --once: keep the state in this directory, and go on from there next time."
)
def run() -> None:
    """Watch the configured sources and serve /metrics until SIGTERM.

    SIGTERM drains and exits 0, a second one ends at once; SIGHUP reloads the configuration.

    With --once, files are read from their beginning, whatever `start` says, and the state is a temporary directory
    that is removed at the end: the state of the configuration is not touched, and a judge's budget begins anew. Exit
    code 1 when none of a source's records could be read or a directory is missing, 3 when there was nothing to read.
    """


@lazy_command(
    "ragwatch.commands.demo:demo", first_line="starting the demo: a small RAG service, and ragwatch beside it ..."
)
@click.option("--port", default=10477, show_default=True, help="Port of ragwatch itself; 0 for any free one.")
@click.option("--seconds", type=click.FloatRange(min=1), help="End after so many seconds; default: on Ctrl-C.")
@click.option(
    "--degrade-after", type=click.FloatRange(min=1), help="After so many healthy seconds, break the service on purpose."
)
@click.option(
    "--breakage-seconds", default=20.0, show_default=True, type=click.FloatRange(min=1), help="How long each."
)
@click.option(
    "--rate", default=8.0, show_default=True, type=click.FloatRange(min=0.1, max=200), help="Questions a second."
)
@click.option("--judge", "kind", type=click.Choice(LLM_JUDGES), help="An LLM judge beside the embedded one.")
@click.option("--base-url", help="Where that judge's model answers; default: its provider.")
@click.option("--model", help="Which model; openai has no default.")
def demo() -> None:
    """Watch a small RAG service over Python's own documentation strings; every answer is judged, without a key.

    With --degrade-after the service breaks in three ways, one after another: documents vanish from its index, it
    invents facts, it ignores the top-ranked passage. Each is announced, and named by stage in the figures.

    With --judge claude or openai a model reads a part of the answers too, most of those that the embedded judge is
    unsure of, for a dollar an hour at most. Its key is taken from ANTHROPIC_API_KEY or OPENAI_API_KEY.
    """


@lazy_command("ragwatch.commands.check:check")
@click.option("--config", "path", type=CONFIG, required=True, help="Configuration file (YAML).")
def check() -> None:
    """Validate a configuration and try it: files, content, judges, endpoints of canaries, address.

    Nothing is stored and no cursor moves. Exit code 1 when something failed, 2 when the configuration is wrong.
    """


@lazy_command("ragwatch.commands.map:map_log", "map")
@click.argument("file", type=click.File("rb"))
def map_log() -> None:
    """Guess the format of FILE (JSONL, gzip too; `-` is standard input) and print it as keys of a source.

    What is printed has been tried on the records: how many it reads, and the first that it does not read, are told.
    Exit code 1 when no known format reads the records; what is printed then is a proposal to complete and try.
    """


@lazy_command("ragwatch.commands.rules:rules")
@click.option("--config", "path", type=CONFIG, required=True, help="Configuration file (YAML).")
@click.option(
    "--format",
    "shape",
    type=click.Choice(["prometheus", "operator"]),
    default="prometheus",
    show_default=True,
    help="Rule files, or one PrometheusRule resource.",
)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Directory to write to; else stdout.")
def rules() -> None:
    """Write recording rules and alerts for the thresholds, windows and objectives of a configuration."""
