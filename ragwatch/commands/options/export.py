"""Options and help of the command that writes stored verdicts and failing answers to files: export."""

from __future__ import annotations

from pathlib import Path

import click

from ragwatch.commands.options.lazy import CONFIG, OUT, lazy_command

MAX_QUESTIONS = 10_000


@lazy_command("ragwatch.commands.export:export")
@click.option("--config", "path", type=CONFIG, required=True, help="Configuration file (YAML): names store and state.")
@click.option(
    "--parquet",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Directory of Parquet files to write, or to add to; needs the extra `parquet`.",
)
@click.option(
    "--texts",
    type=click.Choice(["none", "redacted"]),
    default="none",
    show_default=True,
    help="Whether questions, answers, passages and claims are exported, as far as store.texts keeps them.",
)
@click.option("--metadata", multiple=True, metavar="KEY", help="Metadata to export, such as release or user.tier.")
@click.option("--route", "routes", multiple=True, metavar="ROUTE", help="Export only this route.")
@click.option(
    "--since", metavar="TIME", help="Export only what is newer, such as 7d (whole days in files); default: all."
)
@click.option("--failing", is_flag=True, help="Write failing answers as a regression set instead; needs --as.")
@click.option(
    "--as",
    "kind",
    type=click.Choice(["gate", "ragas", "deepeval", "canaries"]),
    help="--failing: rows for `ragwatch gate`, RAGAS or DeepEval, or a canary suite.",
)
@click.option("--judge", metavar="JUDGE", help="--failing: verdicts of this judge; default: the first one.")
@click.option(
    "--quantity",
    metavar="QUANTITY",
    help="--failing: beyond the threshold of this quantity; default: a stage at fault.",
)
@click.option(
    "--limit",
    default=200,
    show_default=True,
    type=click.IntRange(1, MAX_QUESTIONS),
    help="--failing: number of questions, the newest.",
)
@click.option("--out", type=OUT, help="--failing: file to write; default: standard output.")
def export() -> None:
    """Write stored verdicts to files for other programs, or failing answers as a test set; ragwatch may be running.

    --parquet is for DuckDB, Spark, BigQuery and others. There is one Parquet file for each day (UTC) and route. A
    repeated run adds the verdicts that are new, and changes nothing if none is; what retention deletes from the store
    remains in the files. --metadata, --route and --since narrow what is exported; --metadata and --route may be given
    several times. docs/parquet.md lists the columns.

    --failing writes the newest failing answer to each question, sorted by question, to run against the next release:
    ask its questions again, and judge the new answers with `ragwatch gate`. Texts are redacted; times and metadata are
    left out. Canaries expect the contexts that people or, without relevance judgements, the judge found relevant.
    Answers that people have labelled as right are left out. No file is overwritten.

    Exit code 3 when no verdict, or no failing answer, is stored.
    """
