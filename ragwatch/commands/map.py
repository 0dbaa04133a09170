"""`ragwatch map`: guess a log's format and print the mapping."""

from __future__ import annotations

import json
from typing import Any, BinaryIO

import click

from ragwatch.errors import FormatError
from ragwatch.formats.guess import Guess, guess
from ragwatch.formats.record import parse

RECORDS = 200
ERRORS_SHOWN = 3


@click.command(name="map")
@click.argument("file", type=click.File("rb"))
def map_log(file: BinaryIO) -> int:
    """Guess the format of FILE (JSONL; `-` is standard input) and print it as keys of a source in the configuration.

    Exit code 1 when no known format reads the records; what is printed then is a proposal to complete and try.
    """
    name = getattr(file, "name", "<stdin>")
    records = _records(file, name)
    if not records:
        click.echo(f"{name}: holds no JSON object; ragwatch reads one JSON object a line", err=True)
        return 1
    found = guess(records)
    for error in found.errors[:ERRORS_SHOWN]:
        click.echo(f"{name}: {error}", err=True)
    click.echo(_told(found, len(records)))
    return 0 if found.certain else 1


def _records(file: BinaryIO, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for number, line in enumerate(file, start=1):
        if len(found) == RECORDS:
            break
        if not line.strip():
            continue
        try:
            found.append(parse(line.rstrip(b"\r\n"))[0])
        except FormatError as error:
            click.echo(f"{name}:{number}: {error.reason}: {error}", err=True)
    return found


def _told(found: Guess, records: int) -> str:
    """YAML for a source; JSON strings are YAML strings, and quote what must be quoted."""
    if found.format is None:
        return "# no field looks like a question, contexts or an answer: write a mapping by hand"
    lines = [f"format: {found.format}"]
    if found.certain and found.share is not None:
        lines.insert(0, f"# reads {found.share:.0%} of {records} records; the same as a mapping is:")
    else:
        lines.insert(0, "# a guess from the names of the fields: complete it, then try `ragwatch check`")
    comment = "# " if found.format != "custom" else ""
    lines.append(f"{comment}mapping:")
    lines += [f"{comment}  {field}: {json.dumps(expression)}" for field, expression in found.mapping.items()]
    return "\n".join(lines)
