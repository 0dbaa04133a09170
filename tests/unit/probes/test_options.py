"""Options of probes: what is refused, and how it is told; templates of requests."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from ragwatch.config.validation import _explain
from ragwatch.probes import http, rag
from ragwatch.probes.endpoint import fill, placeholders

GOOD: dict[str, Any] = {"url": "http://127.0.0.1:8000/search", "body": {"q": "{{ query }}"}, "contexts": "hits"}
VECTOR = {"embed": {"url": "http://e/", "body": {"input": "{{ query }}"}, "vector": "data[0]"}, "body": "{{ vector }}"}


def told(model: type[BaseModel], data: Any) -> str:
    """The lines that a person would read."""
    with pytest.raises(ValidationError) as caught:
        model.model_validate(data)
    return "\n".join(_explain(dict(error), "probe", sorted(model.model_fields)) for error in caught.value.errors())


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"url": "ftp://x/"}, "probe.url: is not a URL; write one such as"),
        ({"url": "http://"}, "probe.url: is not a URL"),
        ({"url": "http://me:secret@x/"}, "probe.url: contains a name or password"),
        ({"url": "http://x:/"}, "probe.url: has an empty port"),
        ({"url": "http://x:99999/"}, "probe.url: "),
        ({"url": "http://169.254.169.254/"}, "probe.url: 169.254.169.254 is a metadata service"),
        ({"method": "DELETE"}, "probe.method: 'DELETE' is not known; use 'GET', 'POST' or 'PUT'"),
        ({"method": "GET"}, "probe: method GET sends no body; write `params`"),
        ({"headers": {"Bad Name": "x"}}, "probe.headers: 'Bad Name' is not a header's name"),
        ({"headers": {"host": "x"}}, "probe.headers: host is set by ragwatch"),
        ({"headers": {"X-Ragwatch-Canary": "x"}}, "probe.headers: X-Ragwatch-Canary is set by ragwatch"),
        ({"headers": {"X-A": "a\r\nX-B: b"}}, "probe.headers.X-A: contains characters that a header cannot"),
        ({"bearer": "clé"}, "probe.bearer: contains characters that a header cannot"),
        ({"params": {"a": ["x"]}}, "probe.params.a: must be a text or a number"),
        ({"body": {"q": "{{ qury }}"}}, "probe: {{ qury }} is not known; use {{ k }} or {{ query }} or {{ vector }}"),
        ({"body": {"q": "cats"}}, "probe: neither `body` nor `params` contains {{ query }} or {{ vector }}"),
        ({"body": {"q": "{{ vector }}"}}, "probe: `body` contains {{ vector }}; set `embed`"),
        ({"embed": VECTOR["embed"]}, "probe: `embed` is set, but `body` contains no {{ vector }}"),
        ({"timeout": 0}, "probe.timeout: input should be greater than 0"),
        ({"contexts": "hits["}, "probe.contexts: is not JMESPath"),
        ({"contexts": {"di": "a"}}, "probe.contexts: must be JMESPath, or a mapping"),
        ({"contexts": ["a"]}, "probe.contexts: must be JMESPath, or a mapping"),
        ({"contexts": {"score": "a"}}, "probe.contexts: has nothing to identify contexts by"),
        ({"contexts": {"id": "a["}}, "probe.contexts: id is not JMESPath"),
        ({"score": "cosine"}, "probe.score: "),
        ({"preset": ["chroma"]}, "probe: preset ['chroma'] is not known; use one of: chroma, opensearch,"),
        ({"preset": "pinecone"}, "probe: preset 'pinecone' is not known; use one of: chroma, opensearch,"),
        ({"contxts": "a"}, "probe.contxts: is not a known key; did you mean `contexts`?"),
    ],
)
def test_what_is_wrong_is_told(parts: dict[str, Any], expected: str) -> None:
    """In one line with its place; a secret is not repeated."""
    lines = told(http.Options, GOOD | parts)
    assert expected in lines
    assert "secret" not in lines


def test_what_is_wrong_with_a_service() -> None:
    """The same for kind `rag`; a probe that is no mapping is told, too."""
    oracle = {"url": "http://x/", "body": "{{ query }}", "answer": "a"}
    for parts, expected in (
        ({}, "probe.answer: is missing; add it"),
        ({"answer": "a["}, "probe.answer: is not JMESPath"),
        ({"answer": "a", "body": "{{ vector }}"}, "probe: {{ vector }} is not known; use {{ k }} or {{ query }}"),
        ({"answer": "a", "oracle": oracle}, "probe.oracle: neither `body` nor `params` contains {{ contexts }}"),
    ):
        assert expected in told(rag.Options, GOOD | parts)
    assert told(http.Options, ["x"]).startswith("probe: ")


VALUES = {"query": "why?", "k": 5, "vector": [0.5, 1], "contexts": ["One.", "Two."]}


def test_filling() -> None:
    """A whole text takes the value's type; inside a text it is written out; keys and other values stay."""
    for template, expected in (
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
    ):
        assert fill(template, VALUES) == expected
    template = {"{{ key }}": ["{{ a }} and {{b}}", {"deep": "{{ c }}"}, 3, None]}
    assert placeholders(template) == {"a", "b", "c"}


@given(st.text())
def test_a_question_is_never_a_template(query: str) -> None:
    """Whatever it holds, it arrives as it is, alone and between words."""
    values = {"query": query, "k": 5}
    assert fill({"q": "{{ query }}", "p": "<{{ query }}>"}, values) == {"q": query, "p": f"<{query}>"}
