"""Options and help of the command that writes stored verdicts to files: export."""

from __future__ import annotations

from pathlib import Path

import click

from ragwatch.commands.options.lazy import CONFIG, lazy_command


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
@click.option("--since", metavar="TIME", help="Export only the days since then, such as 7d; default: all.")
def export() -> None:
    """Write all stored verdicts to files for DuckDB, Spark, BigQuery and others; ragwatch may be running.

    There is one Parquet file for each day (UTC) and route. A repeated run adds the verdicts that are new, and changes
    nothing if none is; what retention deletes from the store remains in the files. --metadata, --route and --since
    narrow what is exported; --metadata and --route may be given several times. docs/parquet.md lists the columns.

    Exit code 3 when no verdict is stored.
    """
