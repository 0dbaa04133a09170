"""Words of questions: bounded, alike on every machine, and strange where they were never seen."""

from __future__ import annotations

import random
import time

from hypothesis import given
from hypothesis import strategies as st
from support.patience import cpu_limit

from ragwatch.statistics.text.vocabulary import SLOTS, NoveltyMeter, Vocabulary, learn, words_of

TOPICS = {
    "billing": ["invoice", "refund", "payment", "card", "charge", "subscription", "price", "tax", "receipt", "cancel"],
    "network": ["router", "wifi", "signal", "cable", "modem", "reset", "connection", "drop", "slow", "cable"],
}
ASKED = ["how", "do", "i", "get", "my", "when", "is", "the", "why", "does", "can", "you", "please", "what"]


def question(topic: str, rng: random.Random) -> str:
    """Five ordinary words and three of a topic."""
    return " ".join([*rng.sample(ASKED, 5), *rng.sample(TOPICS[topic], 3)]) + "?"


@given(st.text(max_size=300))
def test_any_text_is_between_0_and_1(text: str) -> None:
    """Whatever is asked; and what was learnt often enough is not strange at all."""
    words = words_of(text)
    assert NoveltyMeter(Vocabulary()).strangeness([text]) == [1.0] * bool(words)
    assert NoveltyMeter(learn(Vocabulary(), [text] * 300)).strangeness([text]) == [0.0] * bool(words)


@given(st.text(st.characters(max_codepoint=127), max_size=100))
def test_plain_text_is_read_as_any_other(text: str) -> None:
    """The quick way for ASCII finds the words that the other one does; half a surrogate pair is no word."""
    assert [*words_of(text), "\u00e9".encode()] == words_of(f"{text} \u00e9 \ud800")


def test_a_hash_is_the_same_on_every_machine() -> None:
    """What one process has learnt another one reads; a vocabulary has one size, and a mark of its own."""
    known = learn(Vocabulary(), ["How do I open a file?"])
    assert (len(known.counts), known.questions) == (SLOTS, 1)
    assert learn(known, ["more"]).mark != known.mark != Vocabulary().mark
    assert [slot for slot, count in enumerate(known.counts) if count] == [932, 13840, 13937, 15939, 16533, 20605]


def test_each_more_makes_it_less_strange() -> None:
    """A word that was seen twice is stranger than one that was seen ten times."""
    known = NoveltyMeter(learn(Vocabulary(), ["river"] * 2 + ["mill"] * 10))
    mill, river, unheard = known.strangeness(["mill", "river", "unheard"])
    assert mill < river < unheard == 1.0
    assert known.strangeness(["mill unheard"]) == [(mill + unheard) / 2]


def test_long_questions_cost_no_more() -> None:
    """A megabyte that somebody pasted is read as far as a question goes."""
    huge = "word " * 200_000
    start = time.process_time()
    assert len(words_of(huge)) == 400
    assert time.process_time() - start < cpu_limit(0.5)


def test_another_mix_of_known_topics_is_seen() -> None:
    """All words are known, and yet: where one topic was rare, its questions are stranger."""
    rng = random.Random(2)
    asked = (question("network" if rng.random() < 0.05 else "billing", rng) for _ in range(2000))
    known = NoveltyMeter(learn(Vocabulary(), asked))
    usual, other = (known.strangeness([question(topic, rng) for _ in range(200)]) for topic in ("billing", "network"))
    assert sum(other) / 200 > sum(usual) / 200 + 0.05


def test_what_is_at_hand_is_bounded() -> None:
    """A meter that has measured many words, and long ones, measures as a fresh one does."""
    rng, known = random.Random(3), learn(Vocabulary(), ["river mill"] * 5)
    meter = NoveltyMeter(known)
    for _ in range(30):
        asked = " ".join(f"{rng.random():.17f}".replace("0.", "w") + "x" * rng.choice((0, 60)) for _ in range(20))
        assert meter.strangeness([asked + " river"]) == NoveltyMeter(known).strangeness([asked + " river"])


@given(st.lists(st.text(st.characters(max_codepoint=300), max_size=30), max_size=8))
def test_many_at_once_are_as_one_by_one(questions: list[str]) -> None:
    """Whatever stands in them, a NUL too: none takes a word from another."""
    meter = NoveltyMeter(learn(Vocabulary(), ["a b c d", "x y z a"]))
    one_by_one = [each for question in questions for each in meter.strangeness([question])]
    assert sorted(meter.strangeness(questions)) == sorted(one_by_one)
