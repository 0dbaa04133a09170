"""Rejects numbers whose value in YAML 1.1 is not what people mean: `1:30` is 90, and `012` is 10."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from ragwatch.errors import ConfigError

_INT, _FLOAT = "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"
_OCTAL = re.compile(r"[-+]?0[0-7_]+")


def reject_ambiguous_numbers(root: yaml.Node | None) -> None:
    """Reject numbers in base 60 and base 8, which are usually meant as a time, or as a number with a leading zero.

    Raises:
        ConfigError: The first such number: its path, its value in YAML, and what to write instead.
    """
    for path, node in scalars(root):
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


def scalars(root: yaml.Node | None) -> Iterator[tuple[str, yaml.ScalarNode]]:
    """Iterate over all scalars with their paths, in the order of the file; aliases are visited once."""
    stack: list[tuple[str, yaml.Node]] = [] if root is None else [("", root)]
    seen: set[int] = set()
    while stack:
        path, node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            yield path or "value", node
        elif isinstance(node, yaml.SequenceNode):
            stack += reversed([(f"{path}[{index}]", item) for index, item in enumerate(node.value)])
        elif isinstance(node, yaml.MappingNode):
            children = [(f"{path}.{_key_text(key)}" if path else _key_text(key), key, item) for key, item in node.value]
            stack += reversed(
                [pair for child_path, key, item in children for pair in ((child_path, key), (child_path, item))]
            )


def _key_text(key: yaml.Node) -> str:
    return str(key.value) if isinstance(key, yaml.ScalarNode) else "?"
