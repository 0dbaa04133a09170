"""Expressions over replies: passages found, or the reason why none can be."""

from __future__ import annotations

from typing import Any

import jmespath
import pytest

from ragwatch.probes.expression import MAX_HITS, ExchangeError, hits_of, text_of, valid_expression, vector_of
from ragwatch.statistics.canary.definition import Failure, Hit

ROWS = "hits[].{id: id, text: text, score: score}"
COLUMNS = {"id": "hits[].id", "text": "hits[].body"}
A, B = {"id": "a", "body": "One."}, {"id": "b", "body": "Two."}
NO_ID, NO_BODY = {"body": "Of no document."}, {"id": "c"}


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
        (
            COLUMNS,
            {"hits": [A, NO_ID, NO_BODY, B]},
            (Hit("a", "One."), Hit(None, "Of no document."), Hit("c"), Hit("b", "Two.")),
        ),
        (COLUMNS, {"hits": [NO_BODY]}, (Hit("c"),)),
        (
            {"id": "hits[].id", "score": "hits[].score"},
            {"hits": [A, B | {"score": 0.5}]},
            (Hit("a"), Hit("b", None, 0.5)),
        ),
    ],
)
def test_passages(expression: Any, reply: Any, expected: tuple[Hit, ...]) -> None:
    """Texts, objects and columns, in the order of the reply; a text stands beside the id of its own row."""
    assert hits_of(expression, reply) == expected


@pytest.mark.parametrize(
    ("expression", "reply", "message"),
    [
        (ROWS, {"results": []}, "contexts: no list was found"),
        (ROWS, [], "contexts: no list was found"),
        ("hits", {"hits": {"id": "a"}}, "contexts: no list was found"),
        ("hits[?score > `0.5`]", {"hits": {"id": "a"}}, "contexts: no list was found"),
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
        # a function of JMESPath meets a type or a number that it was not made for: the reply is at fault
        ("hits[?contains(id, `1`)]", {"hits": [{"id": "a1"}]}, "contexts"),
        ("hits[?score > `1`]", {"hits": [{"score": "high"}]}, "contexts"),
        ("sort_by(hits, &ceil(to_number(score)))", {"hits": [{"score": "inf"}]}, "contexts"),
        ("hits[0:1:0]", {"hits": ["One."]}, "contexts"),
        ("hits[].{id: id, score: to_number(score)}", {"hits": [{"id": "a", "score": "9" * 400}]}, "contexts"),
    ],
)
def test_what_is_no_reply_of_passages(expression: Any, reply: Any, message: str) -> None:
    """A reason and a place; a missing list is not an empty one."""
    with pytest.raises(ExchangeError, match=message) as caught:
        hits_of(expression, reply)
    assert caught.value.reason is Failure.SHAPE


MIDDLE = {"hits": [A, NO_ID, B]}
GROUPS = {"groups": [{"hits": [A, NO_ID]}, {"name": "empty"}, {"hits": [B]}]}


@pytest.mark.parametrize(
    ("expression", "reply"),
    [
        ({"id": "hits[].id"}, MIDDLE),
        ({"id": "hits[].id"}, {"hits": [A, {"id": None, "body": "Of no document."}, B]}),
        ({"id": "hits[*].id"}, MIDDLE),
        ({"id": "hits[:3].id"}, MIDDLE),
        ({"id": "hits[].id | [:2]"}, MIDDLE),
        ({"id": "hits[].id | [?@ != 'b']"}, MIDDLE),
        ({"id": "reverse(hits[].id)"}, MIDDLE),
        ({"id": "hits[].id | reverse(@)"}, MIDDLE),
        ({"id": "hits[?body != 'Two.'].id"}, MIDDLE),
        ({"id": "hits.*.id"}, {"hits": {"first": A, "second": NO_ID, "third": B}}),
        ({"id": "hits[].id || hits[].key"}, MIDDLE),
        ({"id": "results[].id || hits[].id"}, MIDDLE),
        ({"id": "hits[].[id][]"}, MIDDLE),
        ({"id": "hits[].meta[].id"}, {"hits": [{"meta": A}, {"meta": None}, {"meta": B}]}),
        ({"id": "groups[].hits[].id"}, GROUPS),
        ({"id": "groups[*].hits[*].id[]"}, GROUPS),
        ({"id": "groups[].hits | [].id"}, GROUPS),
        ({"id": "[groups[0].hits, groups[2].hits][].id"}, GROUPS),
        ("hits[].{id: id, text: body}", {"hits": [A, None, B]}),
        ("hits[].{id: id, text: join(' ', parts[].text)}", {"hits": [A | {"parts": []}, None]}),
        ("hits[].meta.{id: id}", {"hits": [{"meta": A}, {}, {"meta": B}]}),
        ("hits[]", {"hits": ["One.", None]}),
        ("hits[]", {"hits": [None, None]}),
        ("hits[].body", {"hits": [A, NO_BODY, B]}),
    ],
)
def test_a_row_without_what_is_asked_for_is_no_passage(expression: Any, reply: Any) -> None:
    """Its rank is told, and those after it do not move up."""
    place = 0 if reply == {"hits": [None, None]} else 1
    with pytest.raises(ExchangeError, match=rf"contexts\[{place}\]: (has neither id nor text|is neither)") as caught:
        hits_of(expression, reply)
    assert caught.value.reason is Failure.SHAPE


@pytest.mark.parametrize(
    ("expression", "reply", "expected"),
    [
        ({"id": "groups[].hits[].id"}, {"groups": [{}, {"hits": [A]}, {"hits": None}, {"hits": [B]}]}, ["a", "b"]),
        ({"id": "groups[].hits | [].id"}, {"groups": [{}, {"hits": [A]}]}, ["a"]),
        ({"id": "groups[].hits[].id"}, {"groups": [{}, {}]}, []),
        ({"id": "[dense, sparse][].id"}, {"dense": [A]}, ["a"]),
        ({"id": "*.documents[].id"}, {"retriever": {"documents": [A]}, "llm": {"replies": []}}, ["a"]),
        ({"id": "(output[].hits | [0])[].id"}, {"output": [{"type": "reasoning"}, {"hits": [A]}]}, ["a"]),
        ({"id": "output[].hits | @[0][].id"}, {"output": [{}, {"hits": [A]}]}, ["a"]),
        ({"id": "(output[].hits)[-1][].id"}, {"output": [{"hits": [A]}, {}]}, ["a"]),
        ({"id": "output[].hits | max_by(@, &length(@))[].id"}, {"output": [{}, {"hits": [A]}]}, ["a"]),
        ({"id": "hits[].id || hits[].key"}, {"hits": [{"key": "a"}, {"key": "b"}]}, ["a", "b"]),
        ({"id": "hits[?id].id"}, MIDDLE, ["a", "b"]),
        ({"id": "hits[].join('-', parts[].n)"}, {"hits": [{"parts": [{"n": "a"}, {}, {"n": "b"}]}]}, ["a-b"]),
        ({"id": "hits[].join('-', parts[].n) | [0:1]"}, {"hits": [{"parts": [{}, {"n": "b"}]}]}, ["b"]),
        ("hits[].{id: tags[].name | [0]}", {"hits": [{"tags": [{}, {"name": "a"}]}]}, ["a"]),
        ("hits[?tags[].name | [0] == 'a'].{id: id}", {"hits": [A | {"tags": [{}, {"name": "a"}]}]}, ["a"]),
        (
            "sort_by(hits, &max(days[].n))[].{id: id}",
            {"hits": [B | {"days": [{"n": 2}, {}]}, A | {"days": [{"n": 1}]}]},
            ["a", "b"],
        ),
    ],
)
def test_nulls_that_are_no_rows_are_dropped_as_in_jmespath(expression: Any, reply: Any, expected: list[str]) -> None:
    """Groups without passages, elements that are not picked, parts of a passage, conditions and sort keys."""
    assert [hit.id for hit in hits_of(expression, reply)] == expected


@pytest.mark.parametrize(
    "expression",
    [
        "hits",
        "hits[]",
        "hits[*].{id: id}",
        "hits[1:].{id: id}",
        "hits[::-1]",
        "hits[?score > `0.5` && !(id == 'a')].{id: id, text: body, score: score}",
        "hits | [0:2] | [].body",
        "sort_by(hits, &score)[:2].{id: id, text: join(' ', [id, body])}",
        "map(&{id: id}, hits)",
        "to_array(hits[0])",
        "not_null(results, hits)[].body",
        "values(by_id)",
        "by_id.*.{id: id}",
        "[hits[0], hits[1]][]",
        "groups[].hits[].{id: id}",
        "groups[*].hits[*].body[]",
        "groups[1].hits",
        "results || hits",
        "hits && groups[0].hits",
        "max_by(groups, &rank).hits",
        '`["One."]`',
    ],
)
def test_without_nulls_an_expression_means_what_jmespath_says(expression: str) -> None:
    """Filters, slices, pipes, functions, fallbacks and selections."""
    hits = [A | {"score": 0.9}, B | {"score": 0.8}, {"id": "c", "body": "Three.", "score": 0.4}]
    groups = [{"hits": hits[:1], "rank": 1}, {"hits": hits[1:], "rank": 2}]
    reply = {"hits": hits, "groups": groups, "by_id": {"a": hits[0], "b": hits[1]}}
    rows = jmespath.search(expression, reply)
    assert rows
    assert hits_of(valid_expression(expression), reply) == hits_of("@", rows)


@pytest.mark.parametrize("reply", [{}, {"answer": None}, {"answer": ["Yes."]}])
def test_no_answer(reply: Any) -> None:
    """An answer that is not there is not an empty one."""
    assert text_of("choices[0].text", {"choices": [{"text": "Yes."}]}, "answer") == "Yes."
    with pytest.raises(ExchangeError, match="answer: no text was found"):
        text_of("answer", reply, "answer")


@pytest.mark.parametrize("vector", [None, [], ["1"], [True], [[0.5]], 3])
def test_no_vector(vector: Any) -> None:
    """Nothing that is not numbers is sent on."""
    assert vector_of("data[0].embedding", {"data": [{"embedding": [0.5, 1]}]}) == [0.5, 1]
    with pytest.raises(ExchangeError, match="vector: no list of numbers"):
        vector_of("vector", {"vector": vector})


@pytest.mark.parametrize(
    "expression", ["hits[].{id: id", "a b", "", "len(hits)", "hits[?nope(id)].{id: id}", "sort_by(hits, &oops(id))"]
)
def test_wrong_expressions_are_refused_before_any_reply(expression: str) -> None:
    """Syntax, and functions that JMESPath does not have, wherever they stand."""
    with pytest.raises(ValueError, match="JMESPath"):
        valid_expression(expression)
