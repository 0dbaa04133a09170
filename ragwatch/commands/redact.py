"""`ragwatch redact`: shows what redaction takes from a text."""

import json
from bisect import bisect_right
from collections import Counter

import click

from ragwatch.config import load
from ragwatch.redaction.redactor import Finding, Redactor
from ragwatch.terminal.options.administration import RedactArguments
from ragwatch.terminal.output import file_name_in_errors, printable, say

MAX_BYTES = 64 << 20
_SHOWN_CHARS = 2  # of a value of at least `_MIN_SHOWN` characters, at its start
_MIN_SHOWN = 12


def redact(given: RedactArguments) -> int:
    """Print rule, place and a masked excerpt of every value. Returns the exit code: 1 when there is one."""
    name = getattr(given.file, "name", "<stdin>")
    with file_name_in_errors(name):
        data = given.file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise click.UsageError(f"{name}: is larger than {MAX_BYTES >> 20} MiB; split it")
    text = data.decode("utf-8", "replace")
    redactor = (None if given.path is None else load(given.path).settings.redaction.redactor()) or Redactor()
    rows = list(_rows(text, redactor.findings(text)))
    counts = Counter(str(row["rule"]) for row in rows)
    if given.as_json:
        click.echo(json.dumps({"file": str(name), "findings": rows, "counts": dict(counts.most_common())}))
    else:
        for row in rows:
            click.echo(printable(f"{name}:{row['line']}:{row['column']}: {row['rule']}: {row['excerpt']}"))
        for rule, times in counts.most_common():
            say(f"{rule}: {times}")
        say(f"{len(rows)} values would be redacted" if rows else "nothing would be redacted")
    return 1 if rows else 0


def _rows(text: str, findings: list[Finding]) -> list[dict[str, object]]:
    starts = [0, *(place + 1 for place, char in enumerate(text) if char == "\n")]
    rows = []
    for finding in findings:
        line = bisect_right(starts, finding.start)
        value = text[finding.start : finding.end]
        rows.append(
            {
                "rule": finding.rule,
                "kind": str(finding.kind),
                "line": line,
                "column": finding.start - starts[line - 1] + 1,
                "length": len(value),
                "excerpt": _masked(value),
            }
        )
    return rows


def _masked(value: str) -> str:
    """The first characters of a long value; the others, and all of a short one, as asterisks.

    >>> _masked("correct horse battery"), _masked("hunter2")
    ('co*** (21 characters)', '*** (7 characters)')
    """
    shown = value[:_SHOWN_CHARS] if len(value) >= _MIN_SHOWN else ""
    return f"{' '.join(shown.split())}*** ({len(value)} characters)"
