"""Templates: values in, JSON out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.probes.endpoint import fill, placeholders

VALUES = {"query": "why?", "k": 5, "vector": [0.5, 1], "contexts": ["One.", "Two."]}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ query }}", "why?"),
        ("{{k}}", 5),
        (" {{ k }} ", 5),
        ("top {{ k }}", "top 5"),
        ("{{ vector }}", [0.5, 1]),
        ("vec:{{ vector }}", "vec:[0.5,1]"),
        ("{{ contexts }}", ["One.", "Two."]),
        ("Use:\n{{ contexts }}\nAnswer: {{ query }}", "Use:\nOne.\n\nTwo.\nAnswer: why?"),
        ({"a": [{"b": "{{ query }}"}, True, None, 1.5]}, {"a": [{"b": "why?"}, True, None, 1.5]}),
        ({"{{ query }}": 1}, {"{{ query }}": 1}),
        ("{ query }", "{ query }"),
        ("{{ not-a-place }}", "{{ not-a-place }}"),
        (("a", "{{ k }}"), ["a", 5]),
        ("", ""),
    ],
)
def test_filling(template: Any, expected: Any) -> None:
    """A whole text takes the value's type; inside a text it is written out; keys and other values stay."""
    assert fill(template, VALUES) == expected


@given(st.text())
def test_a_question_is_never_a_template(query: str) -> None:
    """Whatever it holds, it arrives as it is, alone and between words."""
    values = {"query": query, "k": 5}
    assert fill({"q": "{{ query }}", "p": "<{{ query }}>"}, values) == {"q": query, "p": f"<{query}>"}


def test_places_are_found_everywhere() -> None:
    """In texts, lists and mappings, but not in keys."""
    template = {"{{ key }}": ["{{ a }} and {{b}}", {"deep": "{{ c }}"}, 3, None]}
    assert placeholders(template) == {"a", "b", "c"}
