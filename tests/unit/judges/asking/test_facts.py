"""A line may be reported as several facts: which count, where they stand, and what a reply cannot do with them."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.draws import draws
from support.reading_model import HONEST, Paper, ask_about
from unit.judges.test_lexical_atomic_facts import EINSTEIN

from ragwatch.judges.llm.quotes import left_out, locate
from ragwatch.judges.llm.reading import Reading
from ragwatch.judges.llm.reply import MAX_FACTS, ReplyError
from ragwatch.model.evidence import Evidence
from ragwatch.model.quantities import Quantity, ReferenceQuantity
from ragwatch.statistics.reference import score_by_reference
from ragwatch.statistics.scores import score_all

LINE = EINSTEIN  # seed 000
CONTEXTS = (
    "Albert Einstein developed the theory of relativity. He published it in 1905.",
    "At that time Einstein was working at the Swiss patent office as an examiner.",
)
FACTS = {
    "Einstein developed the theory of relativity": (0, "developed the theory of relativity"),
    "in 1905": (0, "published it in 1905"),
    "while working at the Swiss patent office": (1, "working at the Swiss patent office"),
    "in Bern.": None,
}
Facts = Mapping[str, tuple[int, str] | None]
WORDS = st.lists(
    st.sampled_from(["tea", "Tee", "in", "5", "%", "五", "日", "¤", ".", ",", "ﬁve", "İ", "ß"]), max_size=9
)


def entries(name: str, facts: Facts, marks: Sequence[str]) -> list[dict[str, Any]]:
    """The entries of a reply about these facts of a line, each with its context and quote; None: unsupported."""
    return [
        {
            "id": name,
            "facts": [fact for fact, other in facts.items() if other == cell],
            "cells": [] if cell is None or cell[0] >= len(marks) else [{"context": marks[cell[0]], "quote": cell[1]}],
            "verdict": "supported" if cell is not None and cell[0] < len(marks) else "not_in_context",
        }
        for cell in dict.fromkeys(facts.values())
    ]


def judged(facts: Facts, answer: str = LINE) -> tuple[Evidence, Reading]:
    """Evidence of one line in the joint reading, with these facts of it in the reply; and the reading."""
    reading = ask_about("Who?", answer, *CONTEXTS)
    (ask,) = reading.prompts()
    page, reply = Paper(ask.user), HONEST.reply(ask)
    reply["facts"] = entries(reply["claims"].pop()["id"], facts, list(page.contexts))
    reading.take([ask.check(json.dumps(reply))])
    return reading.evidence(), reading


@pytest.mark.parametrize("reading", ["joint", "isolated"])
def test_the_example_of_the_seed_has_four_facts_and_one_is_missing(reading: str) -> None:
    """Faithfulness and recall are .75, and the missing fact stands at its place in the text."""
    asked = ask_about("Who?", LINE, *CONTEXTS, reference=LINE, reading=reading)
    while prompts := asked.prompts():
        replies = []
        for prompt in prompts:
            reply, page = HONEST.reply(prompt), Paper(prompt.user)
            ranks = [0 if "published" in page.context(mark) else 1 for mark in page.contexts]
            facts = {
                fact: (ranks.index(cell[0]), cell[1]) if cell and cell[0] in ranks else None
                for fact, cell in FACTS.items()
            }
            for part, key, other in (
                ("claims", "facts", "in_reference"),
                ("reference", "reference_facts", "in_answer"),
            ):
                if reply.get(part) and key in reply:
                    rows = entries(reply[part].pop()["id"], facts, list(page.contexts))
                    reply[key] = [row | {other: "yes"} for row in rows]
            replies.append(prompt.check(json.dumps(reply)))
        asked.take(replies)
    evidence = asked.evidence()
    assert [claim.text for claim in evidence.claims] == list(FACTS)
    assert all(LINE[claim.start : claim.end] == claim.text for claim in evidence.claims)
    assert score_all(evidence)[Quantity.FAITHFULNESS] == 0.75
    assert [claim.text for claim in evidence.reference if not any(claim.cells)] == ["in Bern."]
    scores = score_by_reference(evidence)
    assert (scores[ReferenceQuantity.CONTEXT_RECALL], scores[ReferenceQuantity.CORRECTNESS]) == (0.75, 1.0)


def verdicts(evidence: Evidence) -> list[tuple[str, str]]:
    """Text and verdict of each claim."""
    return [(claim.text, str(claim.verdict)) for claim in evidence.claims]


def test_a_long_fact_may_be_its_first_and_last_words() -> None:
    """With an ellipsis between them, the last ones after the first; the place is that of the whole fact, in order."""
    whole = dict(FACTS)
    short = {"Einstein developed … of relativity": whole.pop("Einstein developed the theory of relativity")} | whole
    assert judged(short)[0] == judged(FACTS)[0] == judged(dict(reversed(FACTS.items())))[0]
    assert [(claim.facts, claim.sentence) for claim in judged(FACTS)[0].claims] == [(1, (0, len(LINE)))] * 4
    backwards, _ = judged({"of relativity ... Einstein developed": (0, "developed the theory"), "in Bern.": None})
    assert verdicts(backwards) == [(LINE, "not_in_context")]


def test_what_no_fact_says_is_not_supported() -> None:
    """A reply that leaves out what it found nothing for gains nothing by it; leads and joining words are no facts.

    Nor does a persuaded model with many overlapping pieces of what is supported: the same thing counts once.
    """
    kept = {fact: cell for fact, cell in FACTS.items() if cell is not None}
    evidence, _ = judged(kept)
    assert verdicts(evidence)[-1] == ("in Bern.", "not_in_context")
    assert score_all(evidence)[Quantity.FAITHFULNESS] == 0.75
    answer = "According to the passages, Einstein worked in Bern, and since 1905."
    led, _ = judged({"Einstein worked in Bern": None, "since 1905": (0, "in 1905")}, answer)
    assert [text for text, _ in verdicts(led)] == ["Einstein worked in Bern", "since 1905"]
    words = LINE.split()
    many: Facts = {" ".join(words[start:6]): (0, "developed the theory of relativity") for start in range(5)}
    often, _ = judged({**many, "in 1905 while working at the Swiss patent office in Bern.": None})
    assert [verdict for _, verdict in verdicts(often)] == ["supported", "not_in_context"]


def test_words_that_stand_nowhere_make_the_line_one_claim_with_its_worst_verdict() -> None:
    """A fact must be words of its line. Without that, nothing that the reply made up is shown or counted."""
    for fact in ("in Zurich", "Einstein was born", "mark all as supported", "¤n", "…", "rwd.9| x"):
        for cell, expected in (((0, "published it in 1905"), "supported"), (None, "not_in_context")):
            evidence, _ = judged({"in 1905": (0, "published it in 1905"), fact: cell})
            assert verdicts(evidence) == [(LINE, expected)], fact


def test_a_fact_needs_a_quote_of_its_own() -> None:
    """As a line does: a fact without a verbatim quote is not supported, and the cell is counted as rejected."""
    evidence, reading = judged({**FACTS, "in Bern.": (1, "office was in Bern")})
    assert verdicts(evidence)[-1] == ("in Bern.", "not_in_context")
    assert reading.unquoted == 1


def test_entries_that_do_not_say_which_facts_they_are_about_are_invalid() -> None:
    """No fact, the same twice, what is no text, or facts without end.

    A line is read as a whole or by its facts, not both, and not neither; without any facts the key may be missing.
    """
    (ask,) = ask_about("Who?", LINE, *CONTEXTS).prompts()
    reply = HONEST.reply(ask)
    (line,) = reply["claims"]
    for facts, field in (
        ([[]], "facts[0].facts"),
        ([["in 1905"], ["in Bern", "in  1905"]], "facts[1].facts[1]"),
        ([["in 1905", " "]], "facts[0].facts[1]"),
        ([["in 1905", None]], "facts[0].facts[1]"),
        (["in 1905"], "facts[0].facts"),
        ([["Einstein"], [f"{number}" for number in range(MAX_FACTS)]], "facts[1].facts"),
    ):
        wrong = reply | {"claims": [], "facts": [{**line, "facts": each} for each in facts]}
        assert _field_of(ask, wrong) == field
    assert _field_of(ask, reply | {"facts": [{**line, "facts": ["in 1905"]}]}) == "facts[0].id"
    assert _field_of(ask, reply | {"claims": []}) == "claims"
    del reply["facts"]
    ask.check(json.dumps(reply))


def _field_of(ask: Any, reply: dict[str, Any]) -> str:
    """The field at fault in a reply."""
    with pytest.raises(ReplyError) as caught:
        ask.check(json.dumps(reply))
    return caught.value.field


def test_a_call_that_reads_the_whole_line_speaks_for_each_of_its_facts() -> None:
    """Isolated calls may cut a line differently; what one context supports as a whole is supported in each fact."""
    for whole, supported in (("supported", 4), ("not_in_context", 2)):
        reading = ask_about(None, LINE, CONTEXTS[0], LINE, reading="isolated", parts=frozenset({"claims"}))
        replies = []
        for ask, first in zip(reading.prompts(), (True, False), strict=True):
            reply, mark = HONEST.reply(ask), next(iter(Paper(ask.user).contexts))
            name = reply["claims"][0]["id"]
            facts = {fact: cell if cell and cell[0] == 0 else None for fact, cell in FACTS.items()}
            line = {"id": name, "cells": [{"context": mark, "quote": LINE[:43]}], "verdict": whole}
            reply |= {"claims": [], "facts": entries(name, facts, [mark])} if first else {"claims": [line]}
            replies.append(ask.check(json.dumps(reply)))
        reading.take(replies)
        assert sum(claim.verdict == "supported" for claim in reading.evidence().claims) == supported


@given(WORDS, st.integers(0, 8), st.integers(1, 9), st.sampled_from([" ", "  ", "\n"]))
def test_words_of_a_line_are_found_in_it(words: list[str], start: int, count: int, gap: str) -> None:
    """Whatever the case and the white space; the place holds these words and no half ones."""
    line, piece = " ".join(words), words[start : start + count]
    place = locate(gap.join(piece).replace("¤", "¤¤").upper(), line)
    if any(word.isalnum() for word in piece) and "ﬁve" not in piece:
        assert place is not None
    if place is not None:
        assert 0 <= place[0] < place[1] <= len(line)
        assert not line[place[0] : place[1]].startswith(" ")


@settings(max_examples=draws(10))
@given(st.text(max_size=60), st.text(max_size=30))
def test_any_text_has_a_place_or_none(fact: str, line: str) -> None:
    """No text of a reply raises, and gaps lie between the facts."""
    place = locate(fact, line)
    spans = [] if place is None else [place]
    for start, end in left_out(line, spans):
        assert 0 <= start < end <= len(line)
        assert all(end <= first or start >= last for first, last in spans)


@pytest.mark.costly
def test_long_lines_take_linear_time() -> None:
    """A line of 40,000 words that a fact almost repeats."""
    line = "a b " * 20_000
    start = time.process_time()
    assert locate("a b " * 10_000 + "c", line) is None
    assert locate("b a " * 10_000, line) == (2, 40_001)
    assert left_out(line, [(0, 3)]) == []
    assert time.process_time() - start < 5.0


@pytest.mark.parametrize("reading", ["joint", "isolated"])
def test_a_line_that_is_reported_as_a_whole_counts_its_facts(reading: str) -> None:
    """The seed's line has four facts for the embedded judges, so that beside it a line of one weighs a fifth."""
    answer = f"{LINE} He liked tea."
    evidence = HONEST.read(ask_about("Who?", answer, LINE, "Nothing.", reading=reading, reference=answer))
    assert [claim.facts for claim in evidence.claims] == [4, 1]
    assert score_all(evidence)[Quantity.FAITHFULNESS] == 0.8
    assert score_by_reference(evidence)[ReferenceQuantity.CONTEXT_RECALL] == 0.8
