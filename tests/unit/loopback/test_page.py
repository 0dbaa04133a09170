"""The loopback server reads pages as they were written, and answers by its rule."""

from __future__ import annotations

import json
from typing import Any

import pytest
from loopback.asked import SAMPLE, SCHEMA, a_page, an_object, embedded
from loopback.page import PageError, parse, text_of
from loopback.rule import reply_to
from loopback.shape import complaint, fit
from support.hostile import HOSTILE
from support.kit import a_sample

from ragwatch.core.sample import Role, Turn
from ragwatch.judges.claims.claims import claims_of
from ragwatch.judges.llm.prompt.quotes import folded, is_verbatim


@pytest.mark.parametrize("text", HOSTILE)
def test_a_page_reads_back_as_it_was_written(text: str) -> None:
    """Whatever stands in question, context and answer, each line comes back in its section with its own words."""
    history = (Turn(Role.USER, "Hello"), Turn(Role.ASSISTANT, text))
    sample = a_sample(question=text, contexts=(text, "Cats purr."), answer=f"Cats purr. {text}", history=history)
    page = parse(a_page(sample))
    assert [(role, text_of(lines)) for role, lines in page.history] == [("user", "Hello"), ("assistant", text.strip())]
    assert text_of(page.question) == text
    said = [sample.answer[claim.start : claim.end] for claim in claims_of(sample.answer, text).claims]
    assert [line.meant for line in page.answer if line.numbered] == said
    assert "".join(text_of(page.contexts[0][1]).split()) == "".join(text.split())
    assert page.contexts[1][1][0].meant == "Cats purr."


@pytest.mark.parametrize(
    ("prompt", "why"),
    [
        ("Hello", "no page"),
        ("<sample 00000000>\nQUESTION\nbcd.1| Why?", "never closes"),
        ("<sample 00000000>\nQUESTION\nWhy?\n</sample 00000000>", "without a mark"),
        ("<sample 00000000>\nbcd.1| Why?\n</sample 00000000>", "without a mark"),
        ("<sample 00000000>\nCONTEXTS\nbcd.1| Lost.\n</sample 00000000>", "without a mark"),
    ],
)
def test_what_is_no_page_is_refused(prompt: str, why: str) -> None:
    """A prompt without a page, or with a line that nobody answers for, has no reading."""
    with pytest.raises(PageError, match=why):
        parse(prompt)


def test_the_rule_is_what_the_embedded_judge_reads() -> None:
    """Verdicts, cells, relevance and address are the embedded judge's; every quote stands where it says."""
    page = parse(a_page())
    reply = reply_to(page)
    evidence = embedded()
    assert [row["verdict"] for row in reply["claims"]] == [str(claim.verdict) for claim in evidence.claims]
    assert reply["claims"][0]["cells"][0]["context"] == page.contexts[0][0]
    assert [bool(row["useful"]) for row in reply["contexts"]] == [each.relevant for each in evidence.contexts]
    assert reply["address"] == str(evidence.address)
    texts = {mark: folded(each.text) for (mark, _), each in zip(page.contexts, SAMPLE.contexts, strict=True)}
    cells = [cell for row in reply["claims"] for cell in row["cells"]]
    assert cells
    assert all(is_verbatim(cell["quote"], texts[cell["context"]]) for cell in cells)


def test_needs_are_the_parts_of_the_question_or_those_on_the_page() -> None:
    """A double question has two needs; where the page lists some, those are answered, by their ids."""
    assert [need["answered"] for need in reply_to(parse(a_page()))["needs"]] == ["yes", "yes"]
    given = a_page().replace("CONTEXTS", "NEEDS\nxyz.1| Do dogs bark?\nCONTEXTS", 1)
    assert reply_to(parse(given))["needs"] == [{"id": "xyz.1", "question": "Do dogs bark?", "answered": "no"}]


def test_a_reference_is_compared_both_ways() -> None:
    """Claims of the answer are looked up in the reference and claims of the reference in the answer."""
    reply = reply_to(parse(a_page(SAMPLE._replace(reference="Refunds take five days."))))
    assert [row["in_reference"] for row in reply["claims"]] == ["yes", "no"]
    assert reply["reference"][0]["in_answer"] == "yes"


def test_a_reply_has_the_shape_that_was_asked_for() -> None:
    """Keys come from the schema, in its order; what is unknown is blank, a word outside an enum its last."""
    schema = an_object(b={"type": "string"}, a={"type": "array", "items": an_object(id={"type": "string"})})
    assert json.dumps(fit({"a": [{"id": "x", "more": 1}], "c": 2}, schema)) == '{"b": "", "a": [{"id": "x"}]}'
    assert fit("maybe", {"type": "string", "enum": ["yes", "no"]}) == "no"


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "object", "properties": {}}, "additionalProperties"),
        (an_object(a={"type": "integer", "minimum": 1}), "minimum"),
        (an_object(a={"type": "array", "items": an_object(b={"type": "string", "maxLength": 1})}), "maxLength"),
        ("text", "object"),
    ],
)
def test_schemas_that_structured_outputs_refuse(schema: Any, why: str) -> None:
    """Open objects and bounds are refused wherever they stand; the judges' own schema is taken."""
    assert why in str(complaint(schema))
    assert complaint(SCHEMA) is None
