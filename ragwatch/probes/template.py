"""Request templates: JSON values with placeholders such as `{{ query }}` in their texts.

A text that consists of `{{ k }}` alone becomes the value itself, a number; inside a longer text the value is formatted.
Inserted values are not expanded again, so that a query may contain braces.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import orjson

_PLACEHOLDER = re.compile(r"\{\{\s*(\w{1,40})\s*\}\}")


def fill(template: object, values: Mapping[str, object]) -> Any:  # noqa: ANN401 - of the kind of the template
    """Fill in the placeholders of a template.

    >>> fill({"q": "{{ query }}", "k": "{{ k }}", "note": "first {{ k }}"}, {"query": "why?", "k": 5})
    {'q': 'why?', 'k': 5, 'note': 'first 5'}
    """
    if isinstance(template, Mapping):
        return {key: fill(value, values) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [fill(value, values) for value in template]
    if not isinstance(template, str):
        return template
    whole = _PLACEHOLDER.fullmatch(template.strip())
    return values[whole[1]] if whole else _PLACEHOLDER.sub(lambda match: _formatted(values[match[1]]), template)


def placeholders(template: object) -> AbstractSet[str]:
    """Return the names of the placeholders in a template.

    >>> sorted(placeholders([{"q": "{{ query }} {{k}}"}]))
    ['k', 'query']
    """
    if isinstance(template, Mapping):
        return frozenset().union(*map(placeholders, template.values()))
    if isinstance(template, list | tuple):
        return frozenset().union(*map(placeholders, template))
    return frozenset(_PLACEHOLDER.findall(template)) if isinstance(template, str) else frozenset()


def _formatted(value: object) -> str:
    """Format a value inside a text: passages separated by a blank line, a vector as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return "\n\n".join(value)
    return orjson.dumps(value).decode()
