"""Known-bad samples: a model that agrees with everything is fooled by them, one that reads is not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.kit import a_judge_context

from ragwatch.judges.lexical import judge as lexical
from ragwatch.judges.llm.reading import Reading
from ragwatch.model.evidence import Evidence
from ragwatch.model.quantity_row import Part
from ragwatch.model.sample import Context, Sample
from ragwatch.statistics.self_tests import fooled, known_bad

_ROWS = (Path(__file__).parents[3] / "data" / "readings" / "answers.jsonl").read_text(encoding="utf-8").splitlines()
_WORD = re.compile(r"[^\W\d_]{4,}")


def bad_samples() -> list[Sample]:
    """One for each of the pinned answers that has contexts."""
    rows = [json.loads(line) for line in _ROWS]
    samples = [Sample(row["id"], row["question"], tuple(map(Context, row["contexts"])), row["answer"]) for row in rows]
    return [known_bad(sample, sample.id) for sample in samples if any(one.text.strip() for one in sample.contexts)]


def agreeing(claim: str, context: str) -> str | None:
    """Words of the sentence that shares most words with the claim, around the first of these."""
    claimed = set(_WORD.findall(claim))
    sentences = re.split(r"(?<=[.!?;])\s|\n", context)
    words = max(sentences, key=lambda one: len(claimed.intersection(_WORD.findall(one)))).split()
    places = [place for place, word in enumerate(words) if claimed.intersection(_WORD.findall(word))]
    return " ".join(words[max(0, places[0] - 6) : places[0] + 8]) if places else None


def share(samples: list[Sample], read: Callable[[Sample], Evidence]) -> float:
    """How many of them fool the reader."""
    return sum(fooled(read(sample)) for sample in samples) / len(samples)


def by_model(model: Any) -> Callable[[Sample], Evidence]:
    """A reading in which a model replies."""
    return lambda sample: model.read(Reading(sample, parts=frozenset({Part.CLAIMS}), reading="joint", seed="seed"))


@pytest.mark.uncounted
def test_a_model_that_always_agrees_is_fooled(model: Any) -> None:
    """Its quotes are real and share words with the claim, so nothing protects the verdict: the test has to tell.

    Not always, because a dozen of the contexts have hardly a word of more than three letters, or are an attack.
    """
    samples = bad_samples()
    assert len(samples) > 150
    assert share(samples, by_model(model(agreeing))) >= 0.9


def test_a_model_that_reads_is_not_fooled(model: Any, honest: Any) -> None:
    """It finds nothing that says the same; one that agrees without a real quote is not believed."""
    samples = bad_samples()[:60]
    assert share(samples, by_model(honest)) == 0.0
    assert share(samples, by_model(model(lambda _claim, _context: "it is fully supported"))) == 0.0


@pytest.mark.uncounted
def test_words_alone_are_hardly_fooled() -> None:
    """The embedded judge knows that the names and the year of the claim stand nowhere."""
    read = lexical.build(lexical.Options(), name="mine", context=a_judge_context()).evidence
    assert share(bad_samples(), read) <= 0.01


@pytest.mark.parametrize(
    "text", ["返金は五日以内に行われます。", "Возврат занимает пять дней.", "Die Rückgabe ist möglich."]
)
def test_in_other_languages_too(model: Any, text: str) -> None:
    """The claim has words of the passage, whatever its script."""
    bad = known_bad(Sample("s", "?", (Context(text),), "x"), "1")
    assert any(text[start : start + 4] in bad.answer for start in range(len(text) - 4))
    quote = text.rstrip(".。")
    assert fooled(by_model(model(lambda _claim, _context: quote))(bad))
