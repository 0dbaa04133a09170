"""Options and help of the command that writes stored verdicts and failing answers to files: export."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ragwatch.commands.options.lazy import CONFIG, OUT, Arguments, LazyCommand, option

MAX_QUESTIONS = 10_000


class ExportArguments(Arguments):
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

    path: Path = option("--config", type=CONFIG, help="Configuration file (YAML): names store and state.")
    parquet: Path | None = option(
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIR",
        help="Directory of Parquet files to write, or to add to; needs the extra `parquet`.",
    )
    texts: str = option(
        type=click.Choice(["none", "redacted"]),
        default="none",
        help="Whether questions, answers, passages and claims are exported, as far as store.texts keeps them.",
    )
    metadata: Sequence[str] = option(metavar="KEY", help="Metadata to export, such as release or user.tier.")
    routes: Sequence[str] = option("--route", metavar="ROUTE", help="Export only this route.")
    since: str | None = option(
        metavar="TIME", help="Export only what is newer, such as 7d (whole days in files); default: all."
    )
    failing: bool = option(help="Write failing answers as a regression set instead; needs --as.")
    kind: str | None = option(
        "--as",
        type=click.Choice(["gate", "ragas", "deepeval", "canaries"]),
        help="--failing: rows for `ragwatch gate`, RAGAS or DeepEval, or a canary suite.",
    )
    judge: str | None = option(metavar="JUDGE", help="--failing: verdicts of this judge; default: the first one.")
    quantity: str | None = option(
        metavar="QUANTITY", help="--failing: beyond the threshold of this quantity; default: a stage at fault."
    )
    limit: int = option(
        default=200, type=click.IntRange(1, MAX_QUESTIONS), help="--failing: number of questions, the newest."
    )
    out: Path | None = option(type=OUT, help="--failing: file to write; default: standard output.")


export = LazyCommand(ExportArguments, "ragwatch.commands.export:export", "export")
