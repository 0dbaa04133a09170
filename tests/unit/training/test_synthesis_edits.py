"""Single edits and rewritings: what each makes of one sentence."""

from __future__ import annotations

import random

import pytest
from synthesis import facts, hedges, inflect, logic, naming, noise, quantities, rewriting, tenses, turning, wording
from synthesis.lexicon import Lexicon
from synthesis.marked import Marked
from synthesis.reading import read
from synthesis.scene import Scene, World


def scene(world: World, start: str, seed: int = 1) -> Scene:
    """The sentence that starts so."""
    for passage in world.corpus.passages:
        for first, last in passage.sentences:
            if passage.text[first:last].startswith(start):
                return Scene(world, passage, first, last, random.Random(seed))
    raise AssertionError(start)


def test_marks_follow_their_words() -> None:
    """Cut, turned and joined text keeps the marks on the changed words."""
    text = Marked.join(("In 1990, ", Marked.of("Ada", changed=True), " left (for good) with a bag."))
    turned = Marked.join((text.cut(9, 17), " ", text.cut(0, 7)))
    assert (turned.text, turned.spans()) == ("Ada left In 1990", ((0, 3),))
    assert rewriting.no_parens(text, random.Random(1)).spans() == ((9, 12),)


@pytest.mark.parametrize(
    ("base", "form", "wanted"),
    [("write", "VN", "written"), ("stop", "VD", "stopped"), ("carry", "VZ", "carries"), ("make", "VG", "making")],
)
def test_verb_forms(base: str, form: str, wanted: str) -> None:
    """Regular and irregular forms."""
    assert inflect.verb(base, form) == wanted


@pytest.mark.parametrize(("word", "single"), [("cities", "city"), ("women", "woman"), ("boxes", "box"), ("bus", None)])
def test_singulars(word: str, single: str | None) -> None:
    """A plural's singular is among its candidates; a word on -us is no plural."""
    assert (single in inflect.singulars(word)) if single else inflect.singulars(word) == []


def test_a_participle_stays_one(world: World) -> None:
    """`directed` behind `film` and before `by` becomes `written`, not `wrote`."""
    at = scene(world, "Mill Lane is")
    index = next(number for number, token in enumerate(at.sentence.tokens) if token.text == "directed")
    assert wording.formed(at.sentence, index, "write", "V") == "written"


def test_denial_goes_in_and_out(world: World) -> None:
    """A main verb is denied, and a denial is taken away."""
    change = logic.deny(scene(world, "The school won"))
    assert change is not None
    assert change.new("The school won a large prize in 2011.").text in {
        "The school did not win a large prize in 2011.",
        "The school never won a large prize in 2011.",
        "The school failed to win a large prize in 2011.",
    }
    back = logic.deny(scene(world, "He was not"))
    assert back is not None
    assert back.recipe == "deny-out"
    assert back.new("He was not a member of the guild.").text == "He was a member of the guild."


def test_names_change_places(world: World) -> None:
    """The two people on either side of the verb are exchanged."""
    at = scene(world, "James Porter taught")
    change = naming.roles(at)
    assert change is not None
    assert change.new(at.text).text == "Peter Lund taught James Porter in Sweden."


def test_hedges_are_taken_away(world: World) -> None:
    """What may be becomes what must be, which the text does not say."""
    at = scene(world, "Most visitors")
    change = hedges.stronger(at)
    assert change is not None
    assert change.verdict == "not_in_context"
    assert change.new(at.text).text in {
        "All visitors may have seen it twice.",
        "all visitors may have seen it twice.",
        "Most visitors must have seen it twice.",
        "Most visitors will have seen it twice.",
    }


def test_numbers_become_others(world: World) -> None:
    """A changed number is new to the passage, and the sentence differs nowhere else."""
    for seed in range(30):
        at = scene(world, "It sold", seed)
        change = quantities.number(at)
        assert change is not None
        ((start, end, new),) = change.pieces
        assert at.text[start:end] == "412,000"
        assert new not in at.passage.text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Ode (born 3 May 1950) is a Welsh singer who lives in Rome.", {"Ode was born on 3 May 1950.", "Ode is a Welsh singer.", "Ode is a singer."}),  # noqa: E501
        ("Far Away is a 1999 film directed by Ann Lee.", {"Ann Lee directed Far Away.", "Far Away was directed by Ann Lee.", "Far Away is a 1999 film directed by Ann Lee.", "Far Away is a 1999 film.", "Far Away came out in 1999.", "Far Away is a film from 1999."}),  # noqa: E501
    ],
)  # fmt: skip
def test_facts_follow(text: str, wanted: set[str]) -> None:
    """Every short fact is one that the sentence says."""
    found = {fact.text for seed in range(60) if (fact := facts.fact(Marked.of(text), random.Random(seed)))}
    assert found <= wanted
    assert len(found) > 2


def test_rewritings_keep_what_is_said() -> None:
    """Times move, asides go, passives turn."""
    rng = random.Random(1)
    cases = {
        rewriting.time_first: ("The bridge was opened in 1822.", "In 1822, the bridge was opened."),
        rewriting.time_last: ("In 1822, the bridge was opened.", "The bridge was opened in 1822."),
        rewriting.no_tail: ("Brack is old, which is why it is small.", "Brack is old."),
        rewriting.active: ("The bridge was built by Thomas Grey in 1822.", "Thomas Grey built the bridge in 1822."),
        rewriting.genitive: ("It is the capital of France.", "It is France's capital."),
    }
    for step, (text, wanted) in cases.items():
        assert step(Marked.of(text), rng).text == wanted


def test_clauses_and_items_change_places() -> None:
    """Turning a sentence round keeps its words and its sense."""
    rng = random.Random(1)
    cases = {
        turning.clause_last: (
            "Although the bridge is old, it was never closed.",
            "It was never closed although the bridge is old.",
        ),
        turning.clause_first: (
            "The bridge was closed because the river had risen.",
            "Because the river had risen, the bridge was closed.",
        ),
        turning.items: ("It was built by Ann Lee and Bob Ray.", "It was built by Bob Ray and Ann Lee."),
    }
    for step, (text, wanted) in cases.items():
        assert step(Marked.of(text), rng).text == wanted


def test_the_past_becomes_the_future(world: World) -> None:
    """What was done is said to be still to come."""
    at = scene(world, "The film was released")
    change = tenses.tense(at)
    assert change is not None
    assert change.new(at.text).text.startswith("The film will be released on 4 May 1987")


def test_most_become_few_or_none(world: World) -> None:
    """A share is turned round; its capital stays."""
    change = hedges.quantifier(scene(world, "Most visitors"))
    assert change is not None
    ((start, end, new),) = change.pieces
    assert (start, end) == (0, 4)
    assert new in {"Few", "No"}


def test_reading_tells_verbs_from_nouns(lexicon: Lexicon) -> None:
    """The word before decides what an ambiguous word is."""
    sentence = read("The film was directed by James Porter of Leeds.", lexicon)
    assert [token.tag for token in sentence.tokens[:4]] == ["D", "N", "B", "VD"]
    assert [name.text for name in sentence.names] == ["James Porter of Leeds"]


def test_furniture_keeps_the_text() -> None:
    """Page furniture stands around a text (or once inside it); none of its words goes."""
    text = "The bridge is old. It was built in 1822. It is made of wood."
    for seed in range(40):
        words = noise.furnished(text, random.Random(seed)).split()
        position = iter(words)
        assert all(word in position for word in text.split())
