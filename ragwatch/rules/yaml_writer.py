"""Renders rules as YAML that is easy to read and to diff: PyYAML with block style, literal blocks and quoted text."""

import re
from collections.abc import Mapping, Sequence

import yaml

JsonValue = Mapping[str, "JsonValue"] | Sequence["JsonValue"] | str | float | bool | None

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")


class _RuleDumper(yaml.SafeDumper):
    """Indents lists below their key, writes no aliases, and quotes all text except identifiers."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - PyYAML's
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML's
        return True

    def text(self, value: str) -> yaml.ScalarNode:
        """Multi-line text becomes a literal block; PyYAML itself quotes identifiers such as `on`."""
        style = "|" if "\n" in value else None if _IDENTIFIER.fullmatch(value) else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_RuleDumper.add_representer(str, _RuleDumper.text)


def yaml_text(data: JsonValue) -> str:
    """Renders a YAML document.

    >>> print(yaml_text({"groups": [{"name": "a", "rules": []}], "for": "5m", "on": True}), end="")
    groups:
      - name: a
        rules: []
    for: "5m"
    'on': true
    """
    return yaml.dump(data, Dumper=_RuleDumper, sort_keys=False, allow_unicode=True, width=float("inf"))
