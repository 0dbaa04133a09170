"""Templates: JSON values with `{{ query }}` and the like in their texts, filled in for each question.

A text that is nothing but `{{ k }}` becomes the value itself, a number; inside a longer text it is written out. What is
filled in is not looked at again: a question that holds braces stays a question.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import orjson

_PLACE = re.compile(r"\{\{\s*(\w{1,40})\s*\}\}")


def fill(template: Any, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
    """The template with its places filled in.

    >>> fill({"q": "{{ query }}", "k": "{{ k }}", "note": "first {{ k }}"}, {"query": "why?", "k": 5})
    {'q': 'why?', 'k': 5, 'note': 'first 5'}
    """
    if isinstance(template, Mapping):
        return {key: fill(value, values) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [fill(value, values) for value in template]
    if not isinstance(template, str):
        return template
    whole = _PLACE.fullmatch(template.strip())
    return values[whole[1]] if whole else _PLACE.sub(lambda match: _written(values[match[1]]), template)


def places(template: Any) -> AbstractSet[str]:  # noqa: ANN401 - any JSON value
    """Names of the places in a template.

    >>> sorted(places([{"q": "{{ query }} {{k}}"}]))
    ['k', 'query']
    """
    if isinstance(template, Mapping):
        return frozenset().union(*map(places, template.values()))
    if isinstance(template, list | tuple):
        return frozenset().union(*map(places, template))
    return frozenset(_PLACE.findall(template)) if isinstance(template, str) else frozenset()


def _written(value: object) -> str:
    """A value inside a text: passages with a blank line between them, a vector as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return "\n\n".join(value)
    return orjson.dumps(value).decode()
