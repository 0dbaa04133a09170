"""Joins surrogate pairs in YAML texts: JSON writes an emoji as two escapes, which YAML reads as two characters."""

from __future__ import annotations

import yaml

from ragwatch.config.ambiguous_numbers import scalars
from ragwatch.errors import ConfigError


def join_surrogates(root: yaml.Node | None) -> None:
    """Replace each surrogate pair in a text or a key by the character that it means.

    Raises:
        ConfigError: The first text with half of a pair, which no encoding has: its path, and what to write instead.
    """
    for path, node in scalars(root):
        try:
            node.value = node.value.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError as error:
            place = path.encode("utf-8", "backslashreplace").decode()  # a key may be such a text itself
            raise ConfigError(
                f"{place}: contains half of a surrogate pair; "
                r'write the character itself, or both halves such as "\ud83d\ude00"'
            ) from error
