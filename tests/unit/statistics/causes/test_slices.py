"""Traits of an answer, bounded whatever it is; slices of answers with one in common, without memory for rare ones."""

import json
import random

from support.hostile import HOSTILE
from support.kit import a_sample
from support.slices import an_answer

from ragwatch.model.sample import Context, Sample
from ragwatch.statistics.causes import slices
from ragwatch.statistics.causes.slices import (
    MAX_NAMED,
    Answer,
    Attribute,
    candidates,
    missing_documents,
    places_by_attribute,
)
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
    counted = {"contexts": ["a", None, "c"], "retrieved": 3, "score": 0.9, "chars": 14, "cited": [0, 2]}
    metadata = {"release": "v2", "user.tier": "2", "beta": "true"}
    assert traits_of(sample) == counted | {"metadata": metadata, "words": ["is", "s", "tea", "green"]}


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


def test_answers_are_cut_by_every_trait() -> None:
    """Documents by how they were used, counts, bands, judges, hours, words, pairs of words and metadata."""
    answers = [
        an_answer(number, contexts=["a", None, "a", "b"], cited=[3, 3, 9, 1], words=["what", "is", "cold", "tea"])
        for number in range(3)
    ]
    answers += [an_answer(3, retrieved=0, chars=7, score=0.5, metadata={"tier": "gold"}, judge="other 2")]
    found_places = places_by_attribute(answers)
    assert found_places[Attribute.CONTEXT] == {"a": [0, 1, 2], "b": [0, 1, 2]}
    assert found_places[Attribute.TOP_CONTEXT] == {"a": [0, 1, 2]}
    assert found_places[Attribute.CITED_CONTEXT] == {"b": [0, 1, 2]}
    assert found_places[Attribute.CONTEXTS] == {"0": [3]}
    assert found_places[Attribute.TOP_SCORE] == {"0.5": [3]}
    assert found_places[Attribute.ANSWER_LENGTH] == {"7": [3]}
    assert found_places[Attribute.JUDGE] == {"embedded 1": [0, 1, 2], "other 2": [3]}
    assert found_places[Attribute.TERM] == {term: [0, 1, 2] for term in ("is cold", "cold", "cold tea", "tea")}
    assert found_places["metadata.tier"] == {"gold": [3]}
    assert found_places[Attribute.HOUR] == {"22:00 to 23:00 UTC": [0, 1, 2, 3]}


def test_candidates_hold_and_leave_out_enough() -> None:
    """A slice of four answers, or of all but four, proves nothing; the most frequent come first."""
    by_attribute = {
        "metadata.release": {"v1": list(range(16)), "v2": [16, 17, 18, 19]},
        Attribute.CONTEXT: {"a": list(range(5)), "b": list(range(6)), "all": list(range(20))},
        Attribute.MISSING_CONTEXT: {"c": list(range(6))},
    }
    chosen = candidates(by_attribute, 20)
    expected = [("missing_context", "c"), ("context", "b"), ("context", "a")]
    assert [(one.attribute, one.value) for one in chosen] == expected
    assert [one.is_symptom for one in chosen] == [False] * 3


def test_rare_values_are_forgotten_when_there_are_too_many() -> None:
    """A hostile log with a new word in every question takes bounded memory; what is frequent stays."""
    words = [[f"word{number}x{place}" for place in range(20)] for number in range(2600)]
    answers = [an_answer(number, words=["tea", *words[number]]) for number in range(2600)]
    terms = places_by_attribute(answers)[Attribute.TERM]
    assert len(terms) <= slices._MAX_VALUES
    assert len(terms["tea"]) == 2600


def test_keys_of_metadata_are_capped() -> None:
    """The first keys are looked at; further ones are not, and their values cost nothing."""
    answers = [an_answer(number, metadata={f"key{number}": "x", "key0": "y"}) for number in range(200)]
    found_places = places_by_attribute(answers)
    keys = [name for name in found_places if name.startswith("metadata.")]
    assert len(keys) == slices._MAX_METADATA_KEYS
    assert len(found_places["metadata.key0"]["y"]) == 199 + 1


def traffic(gone: range, *, lost: int, metadata: bool = False, count: int = 600) -> list[Answer]:
    """Answers with four of 60 documents each, of which the first `lost` are missing in a period."""
    rng = random.Random(5)
    answers = []
    for number in range(count):
        drawn = [int(rng.random() ** 1.5 * 60) for _ in range(4)]
        names = [f"doc-{one:02}" for one in drawn if not (number in gone and one < lost)]
        release = {"release": "v2" if number in gone else "v1"} if metadata else {}
        answers.append(an_answer(number, contexts=names, metadata=release))
    return answers


def missing(answers: list[Answer]) -> list[tuple[int, int, tuple[str, ...]]]:
    """Begin, end and names of what is missing."""
    slices = missing_documents(answers, places_by_attribute(answers))
    return [(min(one.places), max(one.places), one.values) for one in slices]


def test_documents_that_vanish_are_named_with_their_period() -> None:
    """From some answer until now, or while a release was out: the most missed come first."""
    ((begin, end, names),) = missing(traffic(range(400, 600), lost=50))
    assert (begin in range(375, 426), end) == (True, 599)
    assert set(names) <= {f"doc-{number:02}" for number in range(50)}
    assert names[0] == "doc-00"
    assert len(names) == MAX_NAMED
    ((begin, end, _),) = missing(traffic(range(313, 431), lost=50, metadata=True))
    assert (begin, end) == (313, 430)


def test_healthy_retrieval_misses_nothing() -> None:
    """Documents that are rare, few that vanish, a new release, or a short history are no vanished index."""
    assert missing(traffic(range(0), lost=0)) == []
    assert missing(traffic(range(400, 600), lost=60, count=400)) == []
    assert missing(traffic(range(400, 600), lost=0, metadata=True)) == []
    assert missing([an_answer(number) for number in range(100)]) == []
    assert missing([an_answer(number, contexts=["a"]) for number in range(4)]) == []


def test_what_is_missing_does_not_depend_on_what_fails() -> None:
    """The period is chosen by what was retrieved alone."""
    answers = traffic(range(400, 600), lost=50)
    failing = [answer._replace(failing=answer.seq % 3 == 0) for answer in answers]
    assert missing(failing) == missing(answers)
