"""Expressions over replies: passages found, or the reason why none can be; texts that are nearly the expected ones."""

from typing import Any

import jmespath
import pytest
from support.canaries import a_canary, a_report, a_text

from ragwatch.probes.expression import MAX_HITS, ExchangeError, hits_of, text_of, valid_expression, vector_of
from ragwatch.probes.similarity import MAX_CHARS, SimilarityMeasure, similarity
from ragwatch.statistics.canary.definition import Failure, Hit, Retrieved
from ragwatch.statistics.ranking import context_precision, recall_at

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


def test_without_nulls_an_expression_means_what_jmespath_says() -> None:
    """Filters, slices, pipes, functions, fallbacks and selections."""
    hits = [A | {"score": 0.9}, B | {"score": 0.8}, {"id": "c", "body": "Three.", "score": 0.4}]
    groups = [{"hits": hits[:1], "rank": 1}, {"hits": hits[1:], "rank": 2}]
    reply = {"hits": hits, "groups": groups, "by_id": {"a": hits[0], "b": hits[1]}}
    for expression in (
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
    ):
        rows = jmespath.search(expression, reply)
        assert rows, expression
        assert hits_of(valid_expression(expression), reply) == hits_of("@", rows), expression


def test_no_answer_and_no_vector() -> None:
    """An answer that is not there is not an empty one, and nothing that is not numbers is sent on."""
    assert text_of("choices[0].text", {"choices": [{"text": "Yes."}]}, "answer") == "Yes."
    for reply in ({}, {"answer": None}, {"answer": ["Yes."]}):
        with pytest.raises(ExchangeError, match="answer: no text was found"):
            text_of("answer", reply, "answer")
    assert vector_of("data[0].embedding", {"data": [{"embedding": [0.5, 1]}]}) == [0.5, 1]
    for vector in (None, [], ["1"], [True], [[0.5]], 3):
        with pytest.raises(ExchangeError, match="vector: no list of numbers"):
            vector_of("vector", {"vector": vector})


def test_wrong_expressions_are_refused_before_any_reply() -> None:
    """Syntax, and functions that JMESPath does not have, wherever they stand."""
    wrong = ("hits[].{id: id", "a b", "", "len(hits)", "hits[?nope(id)].{id: id}", "sort_by(hits, &oops(id))")
    for expression in wrong:
        with pytest.raises(ValueError, match="JMESPath"):
            valid_expression(expression)


EXPECTED = "Refunds are paid within fourteen days of the request."
CUT = f"Chapter three. {EXPECTED} Ask support for help."


@pytest.mark.parametrize("measure", SimilarityMeasure)
def test_laws(measure: SimilarityMeasure) -> None:
    """1 for the same text whatever its case and white space, 0 for an empty one, in between else, and symmetric.

    A reply of megabytes must not hold up the loop: what differs behind the limit is not seen.
    """
    similar = similarity(measure)
    assert similar(EXPECTED, f"  {EXPECTED.upper()}\n") == 1.0
    assert similar(EXPECTED, "") == similar("", "") == 0.0
    assert 0.0 <= similar(EXPECTED, "Cats sleep.") < 0.5
    assert similar(EXPECTED, CUT) == pytest.approx(similar(CUT, EXPECTED))
    long = "word " * (MAX_CHARS // 5)
    assert similar(long + "one " * 500_000, long + "other " * 500_000) == 1.0


def test_what_each_measure_sees() -> None:
    """A passage cut elsewhere is the same to `containment`, other word order to `tokens`, neither to `levenshtein`.

    Kitten and sitting are three edits in seven letters. Of the runs `a b c` and `b c d`, one is in the longer text;
    texts of one or two words are compared whole.
    """
    swapped = "of the request. within fourteen days Refunds are paid"
    values = {
        measure: (similarity(measure)(EXPECTED, CUT), similarity(measure)(EXPECTED, swapped))
        for measure in SimilarityMeasure
    }
    assert values[SimilarityMeasure.CONTAINMENT][0] == values[SimilarityMeasure.TOKENS][1] == 1.0
    assert values[SimilarityMeasure.CONTAINMENT][1] < 0.8
    assert max(values[SimilarityMeasure.LEVENSHTEIN]) < 0.8
    assert similarity()("kitten", "sitting") == pytest.approx(4 / 7)
    similar = similarity(SimilarityMeasure.CONTAINMENT)
    assert similar("a b c d", "x a b c y") == 0.5
    assert (similar("a b", "x a b y"), similar("a b", "b a x"), similar("a", "b a")) == (1.0, 0.0, 1.0)


def test_precision_and_recall_without_an_llm() -> None:
    """Two of three passages say what was expected, first and third; one expected text is missing."""
    passages = [EXPECTED, "Our office is in Lisbon.", "Refunds need the order's number"]
    canary = a_canary(*map(a_text, (EXPECTED, "Refunds need the order number.", "Gift cards are not refunded.")))
    retrieved = Retrieved(tuple(Hit(None, passage) for passage in passages))
    ranking = a_report(canary, retrieved, similar=similarity(), tau=0.6).ranking
    assert ranking is not None
    assert recall_at(ranking, 3) == pytest.approx(2 / 3)
    assert context_precision(ranking) == pytest.approx((1 + 2 / 3) / 2)
