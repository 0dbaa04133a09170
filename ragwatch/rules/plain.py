"""Plain: renders dicts, lists and scalars as YAML that is easy to read and to diff.

Only the configuration imports the YAML library. Writing needs none: every JSON scalar is a YAML scalar, and multi-line
text is a literal block.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

Plain = Mapping[str, "Plain"] | Sequence["Plain"] | str | float | bool | None

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_BLOCK = re.compile(r"[!-~][ -~]*(\n([ -~]*[!-~])?)*\n[ -~]*[!-~]")
_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})


def yaml_text(data: Plain) -> str:
    """Renders a YAML document.

    >>> print(yaml_text({"groups": [{"name": "a", "rules": []}], "on": True}), end="")
    groups:
      - name: a
        rules: []
    "on": true
    """
    return "\n".join(_lines(data)) + "\n"


def _lines(data: Plain) -> Iterator[str]:
    if isinstance(data, Mapping) and data:
        for key, value in data.items():
            yield from _entry(f"{_scalar(key)}:", value)
    elif isinstance(data, Sequence) and not isinstance(data, str) and data:
        for value in data:
            yield from _item(value)
    else:
        yield _scalar(data)


def _entry(head: str, value: Plain) -> Iterator[str]:
    if isinstance(value, str) and _BLOCK.fullmatch(value):
        yield f"{head} |-"
        yield from (f"  {line}" if line else "" for line in value.split("\n"))
    elif isinstance(value, Mapping | Sequence) and not isinstance(value, str) and value:
        yield head
        yield from (f"  {line}" if line else "" for line in _lines(value))
    else:
        yield f"{head} {_scalar(value)}"


def _item(value: Plain) -> Iterator[str]:
    for number, line in enumerate(_lines(value)):
        yield f"{'  ' if number else '- '}{line}" if line else ""


def _scalar(value: Plain) -> str:
    if isinstance(value, str) and _BARE.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=isinstance(value, str) and not value.isprintable())
