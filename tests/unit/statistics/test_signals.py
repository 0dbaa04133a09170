"""Signals of every request: exact counts, by route."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kit import a_sample

from ragwatch.model.sample import Context, RelevantContext, Sample
from ragwatch.statistics.signals import RepeatedAnswers, SignalCounter
from ragwatch.statistics.tally import Tallies, Tally, observe
from ragwatch.statistics.text.vocabulary import NoveltyMeter, Vocabulary, learn

_DAY, _AT = 86400.0, 1_777_629_600.0
BOUNDS = st.sampled_from([-1.0, 0.0, 0.05, 0.1, 0.15, 0.3, 1.0, 1.5, 100.0, 101.0])


def tallies_of(signals: SignalCounter) -> Tallies:
    """What the signals add to nothing."""
    counts: Tallies = Counter()
    signals.add_to(counts)
    return counts


def test_by_hand() -> None:
    """Counts of contexts, characters, top scores, empty retrievals, duplicates and abstentions."""
    signals = SignalCounter()
    signals.add("search", a_sample(contexts=("a", "b", "a"), answer="x" * 120))
    signals.add("search", a_sample(contexts=(), answer="I don't know."))
    scored = (Context("a", score=0.75), Context("b", score=0.5))
    signals.add("other", Sample("r", None, scored, "y" * 51))
    once = (Tally.EMPTY_RETRIEVALS, Tally.DUPLICATE_CONTEXTS, Tally.ABSTENTIONS, Tally.UNCITED_ANSWERS)
    cells: dict[tuple[Tally, str], dict[str, float]] = {
        (Tally.CONTEXTS, "search"): {"3.0": 1, "0.0": 1, "sum": 3},
        (Tally.CONTEXTS, "other"): {"2.0": 1, "sum": 2},
        (Tally.ANSWER_CHARS, "search"): {"200.0": 1, "50.0": 1, "sum": 133},
        (Tally.ANSWER_CHARS, "other"): {"100.0": 1, "sum": 51},
        (Tally.TOP_SCORE, "other"): {"0.8": 1, "sum": 0.75},
    }
    assert tallies_of(signals) == {
        **dict.fromkeys([*((tally, ("search",)) for tally in once), (Tally.UNCITED_ANSWERS, ("other",))], 1),
        **{(tally, (route, cell)): n for (tally, route), row in cells.items() for cell, n in row.items()},
    }


@pytest.mark.parametrize(
    ("question", "answer", "differs"),
    [
        ("How long does the warranty last?", "The warranty lasts two years and covers all parts of it.", False),
        ("How long does the warranty last?", "Die Garantie gilt zwei Jahre und ist nicht übertragbar.", True),
        ("Wie lange gilt die Garantie?", "Die Garantie gilt zwei Jahre und ist nicht übertragbar.", False),
        ("Wie lange gilt die Garantie?", "The warranty lasts two years and covers all parts of it.", True),
        ("How long does the warranty last?", "Гарантия действует два года.", True),
        ("Сколько действует гарантия?", "Гарантия действует два года.", False),
        ("Сколько действует гарантия?", "The warranty lasts two years and covers all parts of it.", True),
        ("保修期多长？", "The warranty lasts two years and covers all parts of it.", True),
        ("保修期多长？", "保修期为两年，涵盖所有部件。", False),
        ("Wer schrieb Emma?", "Jane Austen", False),
        ("Who wrote Die Blechtrommel?", "Günter Grass wrote it in 1959.", False),
        ("¿Cuánto dura la garantía?", "La garantía es de dos años para las piezas.", False),
        ("R2 P40?", "R2: 40", False),
        ("How long does the warranty last?", "…?", False),
    ],
)
def test_an_answer_in_another_language_is_counted(question: str, answer: str, *, differs: bool) -> None:
    """Only where question and answer surely differ; whatever the language of the answers before."""
    for before in ("How do I return it to the shop?", "Wie geht das und wo ist es?", "Сколько это стоит?"):
        signals = SignalCounter()
        signals.add("search", Sample("q", before, (), before))
        signals.add("search", Sample("r", question, (), answer))
        assert tallies_of(signals).get((Tally.OTHER_LANGUAGE, ("search",)), 0) == differs


def test_the_same_answer_to_different_questions_is_counted() -> None:
    """Not to the same question again, not an abstention, which has a signal of its own, and not an empty one."""
    known = RepeatedAnswers()
    asked = [("a", "It is green."), ("a", "It is green."), ("b", "It is green."), ("c", "It is red.")]
    asked += [(question, answer) for question in "abc" for answer in ("I don't know.", "", " \n")]
    for question, answer in asked:  # each in a batch of its own
        signals = SignalCounter(None, known)
        signals.add("search", Sample("r", question, (), answer))
        counted = tallies_of(signals)
        assert ((Tally.REPEATED_ANSWERS, ("search",)) in counted) == ((question, answer) == ("b", "It is green."))
        assert ((Tally.EMPTY_ANSWERS, ("search",)) in counted) == (not answer.strip())
    signals = SignalCounter(None, known)
    signals.add("support", Sample("r", "d", (), "It is green."))  # what another route answers is no fault of this one
    assert (Tally.REPEATED_ANSWERS, ("support",)) not in tallies_of(signals)


@pytest.mark.parametrize(
    ("at", "now", "days_old", "bucket"),
    [
        (_AT, _AT, (3.0,), "4.0"),
        (_AT, _AT + 99 * _DAY, (3.0,), "4.0"),  # an old log is read today
        (_AT, None, (3.0,), "4.0"),
        (None, _AT, (3.0,), "4.0"),
        (_AT + 99 * _DAY, _AT, (3.0,), "4.0"),  # the clock of the service is ahead
        (_AT, _AT, (-2.0,), "1.0"),  # changed after the answer
        (_AT, _AT, (100.0, 30.0, None, 1.0), "32.0"),
        (_AT, _AT, (100.0, 30.0), "32.0"),
        (_AT, _AT, (5000.0,), "+Inf"),
        (_AT, _AT, (None, None), None),
        (None, None, (3.0,), None),
    ],
)
def test_age_of_documents(
    at: float | None, now: float | None, days_old: tuple[float | None, ...], bucket: str | None
) -> None:
    """Days from the last change of the documents, their median, to the answer; unknown without a date or a time."""
    contexts = tuple(Context("a", updated_at=None if days is None else _AT - days * _DAY) for days in days_old)
    signals = SignalCounter(now=now)
    signals.add("search", Sample("r", None, contexts, "Tea.", at=at))
    counted = {labels[1] for (tally, labels) in tallies_of(signals) if tally is Tally.DOCUMENT_AGE} - {"sum"}
    assert counted == (set() if bucket is None else {bucket})


@pytest.mark.parametrize(
    ("answer", "uncited", "dangling"),
    [
        ("Tea is green [1].", 0, 0),
        ("Tea is green [1][4].", 0, 1),
        ("Tea is green 【4:0†tea-2】.", 0, 0),
        ("Tea is green (Source: leaflet.pdf).", 1, 0),
        ("Tea is green.", 1, 0),
        ("I don't know.", 0, 0),
    ],
)
def test_citations_that_are_missing_or_name_nothing(answer: str, uncited: int, dangling: int) -> None:
    """Answers without a citation, and those that cite what was not retrieved; abstentions cite nothing rightly."""
    signals = SignalCounter()
    contexts = (Context("Tea is green.", id="tea-1"), Context("Tea is from China.", id="tea-2"))
    signals.add("search", Sample("r", None, contexts, answer))
    counts = tallies_of(signals)
    found = [counts[tally, ("search",)] for tally in (Tally.UNCITED_ANSWERS, Tally.DANGLING_CITATIONS)]
    assert found == [uncited, dangling]


@given(st.lists(st.tuples(st.integers(0, 20_000), BOUNDS), max_size=30))
def test_collected_is_observed_one_by_one(answers: list[tuple[int, float]]) -> None:
    """Adding many at once gives the cells that single observations give, no answer none.

    A value that is a bound counts in the bucket that ends there, one above the last bound beyond all.
    """
    signals, single = SignalCounter(), Counter()
    for length, score in answers:
        signals.add("search", Sample("r", None, (Context("a", score=score),), "x" * length))
        observe(single, Tally.ANSWER_CHARS, ("search",), length)
        observe(single, Tally.TOP_SCORE, ("search",), score)
    counts = tallies_of(signals)
    assert {place: counts[place] for place in counts if place[0] in {Tally.ANSWER_CHARS, Tally.TOP_SCORE}} == single
    assert answers or counts == {}


@given(st.lists(st.text("ab\ud800", max_size=3), max_size=6))
def test_repeated_texts(texts: list[str]) -> None:
    """Contexts repeat where two are the same text, wherever in the list they stand and whatever begins alike."""
    signals = SignalCounter()
    signals.add("search", a_sample(contexts=tuple(texts)))
    counts = tallies_of(signals)[Tally.DUPLICATE_CONTEXTS, ("search",)]
    assert counts == (len(set(texts)) < len(texts))


def test_words_of_questions_are_learnt_then_measured() -> None:
    """Questions of a route without a vocabulary are put aside; those of others are measured, if they hold a word."""
    known = NoveltyMeter(learn(Vocabulary(), ["what do cats do"] * 255))
    signals = SignalCounter({"search": known})
    for route, question in (("search", "What do cats do?"), ("search", "Refund!"), ("search", "?"), ("search", None)):
        signals.add(route, a_sample(question=question))
    signals.add("other", a_sample(question="Why?"))
    assert signals.to_learn_from() == {"other": ["Why?"]}
    counts = {place: each for place, each in tallies_of(signals).items() if place[0] is Tally.QUESTION_STRANGENESS}
    assert counts == {
        (Tally.QUESTION_STRANGENESS, ("search", "0.1")): 1,
        (Tally.QUESTION_STRANGENESS, ("search", "1.0")): 1,
        (Tally.QUESTION_STRANGENESS, ("search", "sum")): 1.0,
    }
    wordless = SignalCounter({"search": known})
    wordless.add("search", a_sample(question="?"))
    assert not any(place[0] is Tally.QUESTION_STRANGENESS for place in tallies_of(wordless))


def test_relevance_judgements_are_ranked() -> None:
    """The seed's example: recall@3 .5, precision@3 1/3, MRR .5; answers without judgements add nothing."""
    contexts = tuple(Context(f"Text of {name}.", name) for name in ("c3", "c1", "c9", "c2"))
    judged = a_sample(contexts=contexts, relevant=(RelevantContext("c1"), RelevantContext("c2")))
    signals = SignalCounter()
    for sample in (judged, judged, a_sample(), judged._replace(relevant=()), a_sample(relevant=judged.relevant)):
        signals.add("search", sample)
    signals.add("search", judged._replace(relevant=(RelevantContext(None, "Text of c1."),)))
    counts = tallies_of(signals)
    assert counts[Tally.RANKED, ("search",)] == 2
    assert counts[Tally.RANKING_SCORE, ("search", "recall", "3")] == 1.0
    assert round(counts[Tally.RANKING_SCORE, ("search", "precision", "3")], 4) == 0.6667
    assert counts[Tally.RANKING_SCORE, ("search", "mrr", "")] == 1.0
    unranked = {labels: count for (tally, labels), count in counts.items() if tally is Tally.UNRANKED}
    assert unranked == {
        ("search", "nothing_relevant"): 1,
        ("search", "no_ids"): 1,
        ("search", "texts_not_compared"): 1,
    }
