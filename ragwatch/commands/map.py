"""`ragwatch map`: guess a log's format and print the mapping."""

from __future__ import annotations

from typing import BinaryIO

import click

from ragwatch.errors import FormatError
from ragwatch.formats.record import parse

RECORDS = 200


@click.command(name="map")
@click.argument("file", type=click.File("rb"))
def map_log(file: BinaryIO) -> int:
    """Guess the format of FILE (JSONL; `-` is standard input) and print it as configuration of a source.

    Exit code 1 when no format reads most of the records; then the mapping is a proposal to complete.
    """
    records, torn = [], 0
    for line in file:
        if len(records) >= RECORDS:
            break
        try:
            records.append(parse(line.rstrip(b"\r\n"))[0])
        except FormatError:
            torn += bool(line.strip())
    if not records:
        click.echo("no JSON object in this file", err=True)
        return 1
    from ragwatch.formats.guess import guess

    found = guess(records)
    return 0
