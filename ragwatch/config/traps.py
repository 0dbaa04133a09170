"""Traps: numbers that YAML reads otherwise than people write them: `1:30` is 90 to it, and `012` is 10."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from ragwatch.errors import ConfigError

_INT, _FLOAT = "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"
_OCTAL = re.compile(r"[-+]?0[0-7_]+")


def refuse_traps(root: yaml.Node | None) -> None:
    """Refuse numbers in base 60 and base 8: who writes them means a time, or a number with a zero in front.

    Raises:
        ConfigError: There is one; its path, what it would be, and what to write instead.
    """
    for path, node in _scalars(root):
        text = node.value
        if node.tag in (_INT, _FLOAT) and ":" in text:
            raise ConfigError(
                f"{path}: YAML reads {text} as a number in base 60; "
                f'write "{text}" in quotes where a text is meant, or the number itself, or a duration such as 90s'
            )
        if node.tag == _INT and _OCTAL.fullmatch(text):
            digits = ("-" if text.startswith("-") else "") + (text.lstrip("+-").replace("_", "").lstrip("0") or "0")
            raise ConfigError(
                f"{path}: YAML reads {text} as an octal number, {int(text.replace('_', ''), 8)}; "
                f'write {digits} for the number, or "{text}" in quotes for the text'
            )


def _scalars(root: yaml.Node | None) -> Iterator[tuple[str, yaml.ScalarNode]]:
    """All scalars, each with the first path that leads to it; an alias is not followed twice."""
    waiting: list[tuple[str, yaml.Node]] = [] if root is None else [("", root)]
    seen: set[int] = set()
    while waiting:
        path, node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            yield path or "value", node
        elif isinstance(node, yaml.SequenceNode):
            waiting += reversed([(f"{path}[{index}]", item) for index, item in enumerate(node.value)])
        elif isinstance(node, yaml.MappingNode):
            inside = [(f"{path}.{_name(key)}" if path else _name(key), key, item) for key, item in node.value]
            waiting += reversed([pair for below, key, item in inside for pair in ((below, key), (below, item))])


def _name(key: yaml.Node) -> str:
    return str(key.value) if isinstance(key, yaml.ScalarNode) else "?"
