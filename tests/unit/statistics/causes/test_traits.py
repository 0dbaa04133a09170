"""Traits of an answer: what is stored of it, bounded, whatever it is."""

from __future__ import annotations

import json

from support.hostile import HOSTILE
from support.kit import a_sample

from ragwatch.model.sample import Context, Sample
from ragwatch.statistics.causes.traits import MAX_CONTEXTS, MAX_WORDS, traits_of, without_texts


def test_what_is_stored_of_an_answer() -> None:
    """Ids of contexts by rank, the first score, what is cited, length, short metadata with paths, words."""
    contexts = (Context("Tea is green.", "a", 0.9), Context("So is grass.", None, 0.5), Context("Cats purr.", "c"))
    sample = Sample(
        "r1",
        "Is [EMAIL:0a1b2c]'s Tea green?",
        contexts,
        "Yes [3][1][9].",
        metadata={"release": "v2", "user": {"tier": 2, "ids": [1], "deep": {"x": 1}}, "beta": True, "ms": 1.5},
    )
    assert traits_of(sample) == {
        "contexts": ["a", None, "c"],
        "retrieved": 3,
        "score": 0.9,
        "chars": 14,
        "cited": [0, 2],
        "metadata": {"release": "v2", "user.tier": "2", "beta": "true"},
        "words": ["is", "s", "tea", "green"],
    }


def test_what_names_a_request_or_is_long_is_left_out() -> None:
    """Ids, times and long texts in metadata are no slices; of an answer without anything nothing is made up."""
    bare = traits_of(Sample("r1", None, (), ""))
    assert (bare["score"], bare["words"], bare["contexts"], bare["retrieved"]) == (None, [], [], 0)
    metadata = {"trace_id": "abc", "at": 1_700_000_000, "note": "x" * 65, "empty": "", "x" * 65: "y", "none": None}
    assert traits_of(a_sample(metadata=metadata))["metadata"] == {}


def test_without_texts_only_the_deployment_remains() -> None:
    """Words and metadata that may name a person are not stored where texts are not kept."""
    sample = a_sample(question="Where is Anna?", metadata={"release": "v2", "user": "anna", "tier": "gold"})
    traits = traits_of(sample, texts=False)
    assert (traits["metadata"], traits["words"]) == ({"release": "v2", "tier": "gold"}, [])
    assert traits == without_texts(traits_of(sample)) == without_texts(traits)


def test_traits_are_bounded() -> None:
    """Hostile texts in every field give little JSON."""
    for text in HOSTILE:
        contexts = tuple(Context(text * 9, text * 9, 1.0) for _ in range(50))
        metadata = {f"{number}{text}"[:70]: {text: text} for number in range(100)}
        traits = traits_of(Sample("r1", text * 99, contexts, text * 99, metadata=metadata))
        assert (len(traits["contexts"]), traits["retrieved"]) == (MAX_CONTEXTS, 50)
        assert len(traits["words"]) <= MAX_WORDS
        assert len(json.dumps(traits)) < 100_000
