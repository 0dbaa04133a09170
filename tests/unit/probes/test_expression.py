"""Expressions over replies: passages found, or the reason why none can be."""

from __future__ import annotations

from typing import Any

import pytest

from ragwatch.core.canary.definition import Failure, Hit
from ragwatch.probes.expression import MAX_HITS, hits_of, text_of, valid_expression, vector_of
from ragwatch.probes.failure import ExchangeError

ROWS = "hits[].{id: id, text: text, score: score}"


@pytest.mark.parametrize(
    ("expression", "reply", "expected"),
    [
        ("hits", {"hits": ["One.", "Two."]}, (Hit(None, "One."), Hit(None, "Two."))),
        (ROWS, {"hits": [{"id": 7, "text": "One.", "score": 1}]}, (Hit("7", "One.", 1.0),)),
        (ROWS, {"hits": [{"id": "a"}]}, (Hit("a"),)),
        (ROWS, {"hits": [{"id": "", "text": "One."}]}, (Hit(None, "One."),)),
        (ROWS, {"hits": []}, ()),
        ("@", ["One."], (Hit(None, "One."),)),
        ("[].{id: key}", [{"key": "a", "more": 1}], (Hit("a"),)),
        (
            {"id": "ids[0]", "score": "far[0]"},
            {"ids": [["a", "b"]], "far": [[0.5, 1]]},
            (Hit("a", score=0.5), Hit("b", score=1.0)),
        ),
        ({"id": "ids", "text": "texts"}, {"ids": [], "texts": []}, ()),
    ],
)
def test_passages(expression: Any, reply: Any, expected: tuple[Hit, ...]) -> None:
    """Texts, objects and columns, in the order of the reply."""
    assert hits_of(expression, reply) == expected


@pytest.mark.parametrize(
    ("expression", "reply", "message"),
    [
        (ROWS, {"results": []}, "contexts: no list was found"),
        (ROWS, [], "contexts: no list was found"),
        ("hits", {"hits": {"id": "a"}}, "contexts: no list was found"),
        ("hits", {"hits": [3]}, r"contexts\[0\]: is neither a text nor an object"),
        ("hits", {"hits": ["One.", None]}, r"contexts\[1\]: is neither a text nor an object"),
        (ROWS, {"hits": [{"id": 1.5}]}, r"contexts\[0\].id: is neither a text nor an integer"),
        (ROWS, {"hits": [{"id": True}]}, r"contexts\[0\].id: is neither"),
        (ROWS, {"hits": [{"id": "a", "text": ["One."]}]}, r"contexts\[0\].text: is not a text"),
        (ROWS, {"hits": [{"id": "a", "score": "0.9"}]}, r"contexts\[0\].score: is not a number"),
        (ROWS, {"hits": [{"id": "a", "score": True}]}, r"contexts\[0\].score: is not a number"),
        (ROWS, {"hits": [{"score": 0.9}]}, r"contexts\[0\]: has neither id nor text"),
        ("length(hits)", {"hits": 3}, "contexts: its expression fails on the reply"),
        (
            {"id": "ids", "text": "texts"},
            {"ids": ["a", "b"], "texts": ["One."]},
            "differ in length: 2 of id, 1 of text",
        ),
        ({"id": "ids"}, {}, "contexts.id: no list was found"),
        ("@", ["One."] * (MAX_HITS + 1), "more than 1000"),
    ],
)
def test_what_is_no_reply_of_passages(expression: Any, reply: Any, message: str) -> None:
    """A reason and a place; a missing list is not an empty one."""
    with pytest.raises(ExchangeError, match=message) as caught:
        hits_of(expression, reply)
    assert caught.value.reason is Failure.SHAPE


def test_texts_and_vectors() -> None:
    """The answer of a service, and the vector of a question."""
    assert text_of("choices[0].text", {"choices": [{"text": "Yes."}]}, "answer") == "Yes."
    assert vector_of("data[0].embedding", {"data": [{"embedding": [0.5, 1]}]}) == [0.5, 1]


@pytest.mark.parametrize("reply", [{}, {"answer": None}, {"answer": ["Yes."]}])
def test_no_answer(reply: Any) -> None:
    """An answer that is not there is not an empty one."""
    with pytest.raises(ExchangeError, match="answer: no text was found"):
        text_of("answer", reply, "answer")


@pytest.mark.parametrize("vector", [None, [], ["1"], [True], [[0.5]], 3])
def test_no_vector(vector: Any) -> None:
    """Nothing that is not numbers is sent on."""
    with pytest.raises(ExchangeError, match="vector: no list of numbers"):
        vector_of("vector", {"vector": vector})


@pytest.mark.parametrize(
    "expression", ["hits[].{id: id", "a b", "", "len(hits)", "hits[?nope(id)].{id: id}", "sort_by(hits, &oops(id))"]
)
def test_wrong_expressions_are_refused_before_any_reply(expression: str) -> None:
    """Syntax, and functions that JMESPath does not have, wherever they stand."""
    with pytest.raises(ValueError, match="JMESPath"):
        valid_expression(expression)


def test_right_expressions_stay_as_they_are() -> None:
    """Filters, fallbacks, slices and functions."""
    expression = "sort_by(hits[?score > `0.1`], &score)[:5].{id: id || key, text: join(' ', [title, text])}"
    assert valid_expression(expression) == expression


@pytest.mark.parametrize(
    ("expression", "reply"),
    [
        ("hits[?contains(id, `1`)]", {"hits": [{"id": "a1"}]}),
        ("hits[?score > `1`]", {"hits": [{"score": "high"}]}),
        ("sort_by(hits, &ceil(to_number(score)))", {"hits": [{"score": "inf"}]}),
        ("hits[0:1:0]", {"hits": ["One."]}),
        ("hits[].{id: id, score: to_number(score)}", {"hits": [{"id": "a", "score": "9" * 400}]}),
    ],
)
def test_a_reply_that_breaks_the_expression_itself(expression: str, reply: Any) -> None:
    """Where a function of JMESPath meets a type or a number that it was not made for, the reply is at fault."""
    with pytest.raises(ExchangeError, match=r"contexts") as raised:
        hits_of(expression, reply)
    assert raised.value.reason is Failure.SHAPE
