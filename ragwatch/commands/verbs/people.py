"""People: the commands with which a person answers ragwatch: label, calibrate, acknowledge."""

from __future__ import annotations

import click

from ragwatch.commands.verbs.deferred import CONFIG, OUT, lazy_command

MOST = 200  # answers that are shown in one session


@lazy_command("ragwatch.commands.label:label")
@click.option("--config", "path", type=CONFIG, required=True, help="Configuration file (YAML).")
@click.option("--annotator", required=True, metavar="NAME", help="Who you are: words are kept under this name.")
@click.option("--count", default=20, show_default=True, type=click.IntRange(1, MOST), help="Answers to be shown.")
@click.option("--whole", is_flag=True, help="Judge answers as a whole, not claim by claim.")
@click.option("--export", "out", type=click.File("w", encoding="utf-8"), help="Write all labels as JSONL; - is stdout.")
@click.option("--import", "rows", type=click.File("rb"), help="Read labels from JSONL; - is stdin.")
@click.option("--url", metavar="URL", help="Address of the running ragwatch; else that of the configuration.")
def label() -> None:
    """Read answers and say what is true of them, so that judges can be corrected.

    It works beside a running ragwatch and without one. The answers are drawn with known probability, more often where
    judges are unsure; the judges' own verdicts are not shown.
    """


@lazy_command("ragwatch.commands.calibrate:calibrate")
@click.option("--config", "path", type=CONFIG, required=True, help="Configuration file (YAML).")
@click.option("--judge", "name", help="Which judge; else the default one.")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout instead of tables.")
@click.option("--out", type=OUT, help="Write the report as JSON here too.")
@click.option("--url", metavar="URL", help="Address of the running ragwatch; else that of the configuration.")
def calibrate() -> None:
    """Compare a judge with people: agreement, kappa, sensitivity, specificity, reliability, and the worst misses.

    Exit code 3 when there are too few labels to conclude anything from.
    """


@lazy_command("ragwatch.commands.acknowledge:acknowledge")
@click.option("--url", default="http://127.0.0.1:10477", show_default=True, help="Where ragwatch listens.")
@click.option("--quantity", help="Only this quantity, or this signal of traffic.")
@click.option("--route", help="Only this route.")
@click.option("--judge", help="This judge's drift instead: its last reading of the anchors is the measure from now on.")
@click.option("--renew", is_flag=True, help="Also learn anew what is ordinary: things are different, and meant to be.")
def acknowledge() -> None:
    """Take drift alarms down. Evidence is gathered from nothing; if things are still bad, the alarm comes again."""
