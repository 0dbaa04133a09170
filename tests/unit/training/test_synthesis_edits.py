"""Single edits and rewritings: what each makes of one sentence."""

import random
from collections.abc import Callable

import pytest
from synthesis import facts, hedges, inflect, logic, naming, noise, quantities, rewriting, tenses, turning, wording
from synthesis.lexicon import Lexicon
from synthesis.marked import Marked
from synthesis.reading import read
from synthesis.scene import Change, Scene, World


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


def test_verb_forms_and_singulars(world: World, lexicon: Lexicon) -> None:
    """Regular and irregular; `directed` becomes `written`, not `wrote`; the word before tells a verb."""
    verbs = {
        ("write", "VN"): "written",
        ("stop", "VD"): "stopped",
        ("carry", "VZ"): "carries",
        ("make", "VG"): "making",
    }
    assert {form: inflect.verb(*form) for form in verbs} == verbs
    assert inflect.singulars("bus") == []
    for word, single in (("cities", "city"), ("women", "woman"), ("boxes", "box")):
        assert single in inflect.singulars(word)
    at = scene(world, "Mill Lane is")
    index = next(number for number, token in enumerate(at.sentence.tokens) if token.text == "directed")
    assert wording.formed(at.sentence, index, "write", "V") == "written"
    sentence = read("The film was directed by James Porter of Leeds.", lexicon)
    assert [token.tag for token in sentence.tokens[:4]] == ["D", "N", "B", "VD"]
    assert [name.text for name in sentence.names] == ["James Porter of Leeds"]


@pytest.mark.parametrize(
    ("edit", "start", "wanted"),
    [
        (logic.deny, "The school won", ["did not win", "never won", "failed to win"]),
        (logic.deny, "He was not", ["He was a member of the guild."]),
        (naming.roles, "James Porter taught", ["Peter Lund taught James Porter in Sweden."]),
        (hedges.stronger, "Most visitors", ["ll visitors may have seen", "visitors must have", "visitors will have"]),
        (hedges.quantifier, "Most visitors", ["Few visitors may", "No visitors may"]),
        (tenses.tense, "The film was released", ["The film will be released on 4 May 1987"]),
    ],
)
def test_an_edit_changes_what_it_is_about(
    world: World, edit: Callable[[Scene], Change | None], start: str, wanted: list[str]
) -> None:
    """Denials go in and out, people change places, hedges go, shares turn, the past becomes the future."""
    at = scene(world, start)
    change = edit(at)
    assert change is not None
    assert any(text in change.new(at.text).text for text in wanted)


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


REWRITINGS: dict[Callable[[Marked, random.Random], Marked], tuple[str, str]] = {
    rewriting.time_first: ("The bridge was opened in 1822.", "In 1822, the bridge was opened."),
    rewriting.time_last: ("In 1822, the bridge was opened.", "The bridge was opened in 1822."),
    rewriting.no_tail: ("Brack is old, which is why it is small.", "Brack is old."),
    rewriting.active: ("The bridge was built by Thomas Grey in 1822.", "Thomas Grey built the bridge in 1822."),
    rewriting.genitive: ("It is the capital of France.", "It is France's capital."),
    turning.clause_last: (
        "Although the bridge is old, it never closed.",
        "It never closed although the bridge is old.",
    ),
    turning.clause_first: (
        "The bridge was closed because the river rose.",
        "Because the river rose, the bridge was closed.",
    ),
    turning.items: ("It was built by Ann Lee and Bob Ray.", "It was built by Bob Ray and Ann Lee."),
}


def test_rewritings_keep_what_is_said() -> None:
    """Times move, asides go, passives, clauses and items turn."""
    for step, (text, wanted) in REWRITINGS.items():
        assert step(Marked.of(text), random.Random(1)).text == wanted


def test_furniture_keeps_the_text() -> None:
    """Page furniture stands around a text (or once inside it); none of its words goes."""
    text = "The bridge is old. It was built in 1822. It is made of wood."
    for seed in range(40):
        words = noise.furnished(text, random.Random(seed)).split()
        position = iter(words)
        assert all(word in position for word in text.split())
