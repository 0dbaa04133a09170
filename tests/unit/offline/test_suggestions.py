"""Canaries out of judged traffic: what is proposed and what never is; `ragwatch canary suggest`."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.command_line import command, configured, refused
from support.kit import a_draw, a_reading, a_record, a_verdict, an_admission, an_evidence

from ragwatch.config import load
from ragwatch.config.canaries import canaries, read_suite
from ragwatch.config.text import parse_text
from ragwatch.model.evidence import ClaimVerdict
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import Context
from ragwatch.offline.question_kinds import (
    AskedQuestion,
    QuestionKind,
    VocabularyCoverage,
    kinds_of,
    newest_date,
    vocabulary_coverage,
)
from ragwatch.offline.state_reader import labels_by_key, last_index_event
from ragwatch.offline.suggest import TAG, CanarySuggestion, Proposal, propose, suite_text, summary_lines
from ragwatch.ports import RecordedEvent
from ragwatch.statistics.canary.definition import Canary, Category, Expected
from ragwatch.statistics.labels.label import Label
from ragwatch.statistics.verdict_line import ClaimRecord, VerdictRecord
from ragwatch.stores.sqlite.store import SqliteStore

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).filter(str.strip)
Row = tuple[VerdictRecord, dict[str, Any] | None]
CONTEXTS = (Context("Cats purr.", "d1"), Context("Dogs bark.", "d2"))
suggested = partial(command, "canary", "suggest")


def a_row(question: Any = "Where is the mill?", used: tuple[str, ...] = ("d1",), **parts: Any) -> Row:
    """A stored verdict on an answer from three contexts, of which these were used, with its sample."""
    given = {"faithfulness": 1.0, "relevancy": 1.0, "probability": 1.0, "contexts": None} | parts
    contexts = given["contexts"] or [{"id": name, "text": f"Text of {name}."} for name in ("d1", "d2", "d3")]
    verdict = a_record(
        scores={"faithfulness": given["faithfulness"], "answer_relevancy": given["relevancy"]},
        contexts=[{"used": context["id"] in used or context["id"] is None} for context in contexts],
        probability=given["probability"],
    )
    return verdict, {"question": question, "contexts": contexts, "history": given.get("history")}


def suggest(rows: Any, **options: Any) -> list[CanarySuggestion]:
    """The suggestions from these rows."""
    return list(propose(rows, **options).suggestions)


def a_proposal(*suggestions: CanarySuggestion) -> Proposal:
    """A proposal of these."""
    return Proposal(suggestions, VocabularyCoverage(None, 0, 0), len(suggestions), 0, 0)


def test_frequent_questions_come_first() -> None:
    """Frequency follows from the sampling probability; what fewer than half of the good answers used is left out."""
    rows = [a_row("b?"), a_row("a?"), a_row("c?"), a_row("C? "), a_row("rare?", probability=0.1)]
    suggestions = suggest(rows)
    asked = [("rare?", 10.0, 1), ("C?", 2.0, 2), ("a?", 1.0, 1), ("b?", 1.0, 1)]
    assert [(one.canary.query, one.weight, one.answers) for one in suggestions] == asked
    assert [suggestion.canary.query for suggestion in suggest(rows, limit=1)] == ["rare?"]
    assert suggest(reversed(rows)) == suggestions
    (suggestion,) = suggest([a_row(used=("d1", "d2")), a_row(used=("d1",)), a_row(used=("d1", "d3"))])
    assert suggestion.canary.expected == (Expected("d1"),)
    assert (suggestion.canary.category, suggestion.canary.tags) == (Category.SIMPLE_FACTUAL, (TAG,))
    (wide,) = suggest([a_row(used=("d3", "d2", "d1"))])
    assert [context.id for context in wide.canary.expected] == ["d1", "d2", "d3"]
    assert wide.canary.category is Category.COMPLEX_FACTUAL
    assert suggest([a_row(used=(name,)) for name in ("d1", "d2", "d3")]) == []


def test_only_good_answers_teach() -> None:
    """Unfaithful, off the point, unread, without used contexts, without a sample or a question: nothing.

    A canary has no conversation before it, so that only first questions are suggested; one that there is already is not
    suggested again, however it is written.
    """
    lost = a_row()[0], None
    rows = [
        a_row(faithfulness=0.9),
        a_row(faithfulness=None),
        a_row(relevancy=0.5),
        a_row(relevancy=None),
        a_row(used=()),
        a_row(None),
        a_row("  "),
        lost,
        (a_record(scores=None), {"question": "Why?"}),
        a_row("And for students?", history=[{"role": "user", "text": "How much is a ticket?"}]),
    ]
    assert suggest(rows) == []
    assert suggest([a_row("Where is  the mill?")], known=["where is the Mill?"]) == []
    assert len(suggest([a_row(history=[])])) == 1


def test_redacted_texts_are_never_expected_or_asked() -> None:
    """A token is not what a person asked, nor what a retriever returns; an id beside a redacted text will do."""
    redacted = "[EMAIL:3f2a9c]"
    assert suggest([a_row(f"Who is {redacted}?")]) == []
    nameless = [{"id": None, "text": text} for text in (f"Write to {redacted}.", " ", "Plain.")]
    (suggestion,) = suggest([a_row(contexts=nameless)])
    assert suggestion.canary.expected == (Expected(None, "Plain."),)
    assert suggest([a_row(contexts=nameless[:2])]) == []
    (named,) = suggest([a_row(contexts=[{"id": "d1", "text": redacted}])])
    assert named.canary.expected == (Expected("d1"),)


@example(['Is "C:\\mill" a path?', "line\nend \x07\U0001f600"])
@given(st.lists(TEXTS, min_size=1, max_size=4, unique=True))
def test_any_text_survives_the_file(texts: list[str]) -> None:
    """Whatever a question or a context holds, the file says it and no more: quotes, line ends, YAML's own signs.

    NUL is in no sample: the formats replace it.
    """
    made = [
        CanarySuggestion(Canary(f"n{number}", text, (Expected(None, text),), tags=(TAG,)), 1.0, 1, 1.0)
        for number, text in enumerate(texts)
    ]
    read = canaries(parse_text(suite_text(a_proposal(*made)), "suite")["items"], "items")
    assert read == tuple(suggestion.canary for suggestion in made)


def test_names_differ_where_questions_do(tmp_path: Path) -> None:
    """Questions that differ in signs alone would share a name, and no suite can be read that has a name twice."""
    suggestions = suggest([a_row("Is it on?"), a_row("Is it on!"), a_row("Is it off?")])
    names = [suggestion.canary.name for suggestion in suggestions]
    assert "is-it-on" in names
    assert len(set(names)) == len(names) == 3
    (tmp_path / "suite.yaml").write_text(suite_text(a_proposal(*suggestions)))
    assert [canary.name for canary in read_suite(tmp_path / "suite.yaml")] == names


def test_the_head_and_the_spread_of_suggestions() -> None:
    """2 of 10 questions make 80 % of the traffic; of fifty suggestions half are such, and new words come first."""
    rows = [a_row(f"head {name}?") for name in "ab" for _ in range(16)]
    rows += [a_row(f"tail {name}?") for name in "abcdefgh"]
    found = propose(rows, limit=100)
    head = [one for one in found.suggestions if one.kind is QuestionKind.HEAD]
    assert (found.questions, found.head, len(head)) == (10, 2, 2)
    assert head[0].why[0] == "head: 40.0% of the traffic"
    assert {one.kind for one in found.suggestions[2:]} == {QuestionKind.OTHER}
    assert vocabulary_coverage([], ["a"]) == VocabularyCoverage(None, 0, 0)
    assert propose([]).suggestions == ()
    rows = [a_row(f"common question {number}?") for number in range(40) for _ in range(20)]
    rare = [f"rare {word} {number}?" for number in range(10) for word in ("opening", "refund")]
    rows += [a_row(question, used=("d1", "d2", "d3")) for question in rare]
    found = propose(rows, limit=50)
    assert len(found.suggestions) == 50
    assert sum(one.kind is QuestionKind.HEAD for one in found.suggestions) >= 25
    assert (found.coverage.share or 0.0) > 0.9


def test_questions_without_a_good_answer_expect_nothing() -> None:
    """An abstention, by the judge or by the words of the answer; a date after the index is temporal instead."""
    said, sample = a_row("Who sings?", used=())
    assert sample is not None
    declined = said, sample | {"answer": "I don't know."}
    (negative,) = suggest([declined])
    assert (negative.canary.category, negative.canary.expected) == (Category.NEGATIVE, ())
    assert negative.kind is QuestionKind.HEAD
    assert "no_good_answer: 1 of 1 answers decline to answer" in negative.why
    assert negative.faithfulness is None
    later = said, sample | {"question": "Who sings in May 2031?"}
    (temporal,) = suggest([later], indexed="2031-04-30")
    assert temporal.canary.category is Category.TEMPORAL
    assert "temporal: asks about May 2031; the index is of 2031-04-30" in temporal.why
    assert suggest([later], indexed="2031-05-01") == []
    dated = [{"id": "d1", "text": "Programme of 2030."}]
    assert len(suggest([(said, sample | {"question": "What is on in 2031?", "contexts": dated})])) == 1
    text = suite_text(propose([declined, later], indexed="2031-04-30"))
    assert "none found right" in text
    assert "expected:" not in text


def test_answers_that_need_several_contexts_are_multi_hop() -> None:
    """Claims that contexts support jointly, or that no single context supports all of."""
    joint, first, second = (
        ClaimRecord("c", None, None, ClaimVerdict.SUPPORTED, None, ranks, None, joint=len(ranks) > 1)
        for ranks in ((0, 1), (0,), (1,))
    )
    for claims, expected in (((joint,), True), ((first,), False), ((first, second), True)):
        verdict, sample = a_row(used=("d1", "d2"))
        verdict = replace(verdict, claims=claims)
        (found,) = suggest([(verdict, sample)])
        assert any(why.startswith("multi_hop") for why in found.why) is expected
        assert (found.canary.category is Category.COMPLEX_FACTUAL) is expected


def test_people_count_and_not_the_judge() -> None:
    """An answer that people labelled right is one, whatever the judge says; and the other way round."""
    doubted, trusted = a_row(faithfulness=0.5), a_row()
    key = trusted[0].key
    right = Label(key, "ann", 0.0, {Quantity.FAITHFULNESS: 1.0})
    (found,) = suggest([doubted], labels={key: [right]})
    assert found.by_people == 1
    assert "1 judged answers, 1 found right (1 by people) with faithfulness 0.50" in suite_text(a_proposal(found))
    unread = replace(doubted[0], scores={**doubted[0].scores, Quantity.FAITHFULNESS: None}), doubted[1]
    (found,) = suggest([unread], labels={key: [right]})
    assert "1 judged answers, 1 found right (1 by people)\n" in suite_text(a_proposal(found))
    assert suggest([trusted], labels={key: [Label(key, "ann", 0.0, {Quantity.FAITHFULNESS: 0.0})]}) == []


def test_odd_and_ambiguous_questions_without_a_right_answer_are_counted() -> None:
    """They cannot expect anything yet; the summary asks for labels."""
    rows = [a_row(f"Is room {word} open today?") for word in ("one", "two", "one", "two") * 5]
    rows += [a_row(f"Is room number {number * 'i'} open?") for number in range(1, 9)]
    rows.append(a_row("Pray whither hath gone yonder miller?", faithfulness=0.0))
    found = propose(rows)
    assert found.unanswered == 1
    assert "1 odd, ambiguous or multi-hop questions" in summary_lines(found)[-1]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("What changed in the release of today?", "temporal"),
        ("What is in the latest version?", "temporal"),
        ("Who was elected this week?", "temporal"),
        ("Compare A with B and list what they share.", "comparative"),
        ("What is the difference between a lease and a rental?", "comparative"),
        ("Is the train cheaper than the bus?", "comparative"),
        ("Which of the two is older, the mill or the church?", "comparative"),
        ("Who built the mill?", None),
        ("How do I update the release notes?", None),
        ("What does a comparator do?", None),
    ],
)
def test_kinds_that_the_words_tell(text: str, kind: str | None) -> None:
    """Without any date of the index; a question that compares is a comparative canary."""
    (kinds,) = kinds_of([AskedQuestion(text, 1.0, 3)], None)
    assert [str(one) for one in kinds if one is not QuestionKind.HEAD] == ([] if kind is None else [kind])
    if kind == "comparative":
        assert [one.canary.category for one in suggest([a_row(text) for _ in range(12)])] == [Category.COMPARATIVE]


def test_edge_questions_are_told_by_words_and_scores() -> None:
    """The strangest words, and the flattest scores, of ten questions or more; fewer tell nothing."""
    asked = [AskedQuestion(f"is the gate open at {hour}?", 10.0, 1, spread=0.5) for hour in range(11)]
    odd = {"wherefore art thou": 0.9, "is the gate open": 0.01}
    asked += [AskedQuestion(text, 1.0, 1, spread=spread) for text, spread in odd.items()]
    found = kinds_of(asked, None)
    assert QuestionKind.ODD_PHRASING in found[-2]
    assert found[-1][QuestionKind.AMBIGUOUS] == "no context stands out: retrieval scores spread by 1.0%"
    told = {kind for kinds in kinds_of(asked[-2:], None) for kind in kinds}
    assert not told & {QuestionKind.ODD_PHRASING, QuestionKind.AMBIGUOUS}


def test_dates_of_texts() -> None:
    """A month or a year ends with its last day; what is no date is left out."""
    told = {
        "2031-02": "2031-02-28",
        "on 2031-12-24": "2031-12-24",
        "December 2031": "2031-12-31",
        "12 March 2031": "2031-03-31",
        "2031-13-01": None,
        "since 1850": None,
    }
    assert {text: newest_date([text]) for text in told} == told


@pytest.fixture
def store(store: SqliteStore) -> SqliteStore:
    """The store of a daemon that runs, with two good answers, and a bad one."""
    asked = {"r1": "What do cats do?", "r2": "what do cats  do?", "r3": "What do dogs do?"}
    draws = [a_draw(name, question=text, contexts=CONTEXTS) for name, text in asked.items()]
    store.admit(an_admission(*draws))
    store.settle([a_verdict(draw, an_evidence((int("cats" in draw.sample.question), 0))) for draw in draws])
    return store


@pytest.mark.usefixtures("store")
def test_a_suite_from_judged_traffic(tmp_path: Path) -> None:
    """While the daemon holds its state, a suite is written that can be read; a second one never takes its place."""
    out = tmp_path / "suggested.yaml"
    result = suggested("--config", configured(tmp_path), "--out", str(out))
    assert result.return_value == 0
    assert "wrote 1 suggestions" in result.stderr
    (canary,) = read_suite(out)
    assert canary.query in {"What do cats do?", "what do cats do?"}
    assert [each.id for each in canary.expected] == ["d1"]
    assert "# asked about 2 times; 2 judged answers" in out.read_text()
    assert "of the words of the questions by occurrence" in result.stderr
    assert suggested("--config", configured(tmp_path)).stdout == out.read_text()
    again = suggested("--config", configured(tmp_path), "--out", str(out))
    assert "already exists" in refused(again)


def test_labels_and_index_events_are_read(tmp_path: Path, store: SqliteStore) -> None:
    """An answer that people labelled as wrong is not suggested; the last index update is that of the last event."""
    keys = [a_draw(name).key for name in ("r1", "r2")]
    store.add_labels([Label(key, "ann", 1.0, {Quantity.FAITHFULNESS: 0.0}) for key in keys])
    config = load(configured(tmp_path))
    assert last_index_event(config) is None
    store.record(RecordedEvent(86_400.0, "index", ""))
    assert last_index_event(config) == "1970-01-02"
    assert sorted(labels_by_key(config)) == sorted(keys)
    assert suggested("--config", configured(tmp_path)).return_value == 3


def test_an_answer_counts_once(tmp_path: Path, store: SqliteStore) -> None:
    """However many judges have read it: the comment counts how often a question was asked."""
    store.admit(an_admission(*(a_draw(name) for name in ("r4", "r5")), judges=("embedded", "second"), cursor="2"))
    second = [a_verdict(a_draw(name), reading=a_reading("second")) for name in ("r4", "r5")]
    store.settle([*second, a_verdict(a_draw("r4"))])
    found = suggested("--config", configured(tmp_path)).stdout
    assert "# asked about 3 times; 3 judged answers" in found


@pytest.mark.usefixtures("store")
def test_nothing_to_propose(tmp_path: Path) -> None:
    """What is a canary already is not proposed again: exit code 3."""
    items = [{"query": "what do cats do?", "expected": ["d1"]}]
    probe = {"kind": "http", "url": "http://127.0.0.1:1/", "body": {"q": "{{ query }}"}, "contexts": "hits"}
    suite = {"suite": "docs", "items": items, "probe": probe}
    result = suggested("--config", configured(tmp_path, canaries=[suite]))
    assert result.return_value == 3
    assert "nothing to propose yet" in result.stderr
