"""Texts of chunks: cut edges, near-duplicates, and neighbours in a document."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.draws import draws

from ragwatch.offline.diagnosis.chunks import (
    are_neighbours,
    begins_inside,
    document_place,
    ends_inside,
    linked,
    near_duplicates,
    overlap_words,
    splits_sentence,
)

LONG = "The warranty lasts two years and covers all parts that fail in normal use at home"


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("", None),
        ('"""', False),
        ("... and so on.", True),
        (", which is late.", True),
        ("which is late. It ends.", True),
        ("all of it is in lower case", None),
        ("The end.", False),
        ('"the end," he said. It is late.', True),
        ("iPhone users pay. It ends.", False),
        ("pip install ragwatch", None),
        ("max_len is three. It ends.", False),
        ("2. Boil it.", False),
        ("- boil it", False),
        ("水は百度で沸く。", None),
        ("2024 was dry.", False),
    ],
)
def test_where_a_chunk_begins(text: str, inside: object) -> None:
    """Lower case begins inside a sentence, unless it is a name or nothing in the chunk has a capital."""
    assert begins_inside(text) is inside


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("", None),
        (LONG, True),
        (f"{LONG}.", False),
        (f"{LONG} (see above).", False),
        ("Refunds", False),
        ("It is so. Cut here", True),
        ("Do this:", True),
        ("It goes on ...", True),
        ("It ends.\n- an item that is long enough to be taken for a sentence", False),
        ("| a | b |", False),
        ("水は百度で沸く。", False),
        ("**", False),
    ],
)
def test_where_a_chunk_ends(text: str, inside: object) -> None:
    """A line without a stop is cut, unless it may be a heading, an item, a table or code."""
    assert ends_inside(text) is inside


def test_copies_and_versions_are_near_duplicates() -> None:
    """Case, punctuation and numbers make no difference; other words do; tables of numbers are compared as they are."""
    tables = ["1 2 3 4 5 6", "7 8 9 1 2 3", "1  2 3 4 5 6"]
    texts = [LONG, f"{LONG.upper()}!", LONG.replace("two", "2"), "Cats purr when they are fed.", *tables, ""]
    assert near_duplicates(texts) == [(0, 1), (4, 6)]
    long = " ".join(f"word{chr(97 + number)}" for number in range(26))
    assert near_duplicates([f"{long} It costs 5.", f"{long} It costs 7.", long]) == [(0, 1, 2)]
    assert near_duplicates([LONG] * 50) == [tuple(range(50))]  # only so many are compared, and a copy of any joins


@settings(max_examples=draws(30))
@given(st.lists(st.text(max_size=60), max_size=12))
def test_groups_are_disjoint_and_hold_equal_texts_together(texts: list[str]) -> None:
    """Every text is in at most one group, and equal texts with a word are in the same one."""
    groups = near_duplicates([*texts, *texts])
    members = [index for group in groups for index in group]
    assert len(members) == len(set(members))
    for index, text in enumerate(texts):
        if any(char.isalpha() for char in text):
            assert any({index, index + len(texts)} <= set(group) for group in groups)


@settings(max_examples=draws(50))
@given(st.lists(st.sampled_from("ab"), max_size=9), st.lists(st.sampled_from("ab"), max_size=9))
def test_overlap_is_the_longest_one(before: list[str], after: list[str]) -> None:
    """The same as trying every length."""
    longest = max(n for n in range(min(len(before), len(after)) + 1) if before[len(before) - n :] == after[:n])
    assert overlap_words(" ".join(before), " ".join(after)) == longest


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("a.md#3", ("a.md", 3)),
        ("4711_2", ("4711", 2)),
        ("x/9", ("x", 9)),
        ("guide chunk 4", ("guide", 4)),
        ("doc-17", None),
        ("a#", None),
        ("17", None),
        ("#17", None),
        ("abc17", None),
        ("-" * 400 + "#1", None),
    ],
)
def test_an_id_may_name_a_place(name: str, place: tuple[str, int] | None) -> None:
    """Only where it cannot be the number of a document."""
    assert document_place(name) == place


def test_neighbours() -> None:
    """By consecutive places in one document, else by common words at the border."""
    assert are_neighbours(("a.md#3", ""), ("a.md#2", ""))
    assert not are_neighbours(("a.md#3", LONG), ("a.md#5", LONG))
    assert not are_neighbours(("a.md#3", ""), ("b.md#4", ""))
    assert are_neighbours((None, LONG), ("x", f"in normal use at home {LONG}"))
    assert not are_neighbours((None, "One."), (None, "Two."))


def test_any_two_of_many() -> None:
    """Of few chunks all pairs are compared, of many the consecutive ones."""
    apart = [(f"doc{number}.md#{number}", "") for number in range(20)]
    assert not linked(apart)
    assert not linked(apart[:1])
    assert linked([*apart, ("doc3.md#4", "")])
    assert linked([("a.md#1", ""), ("b.md#1", ""), ("a.md#2", "")])


def test_a_short_end_tells_no_cut() -> None:
    """Two words on either side of a cut are needed, so that a chance word is none."""
    before = "The fee of the garden is due in spring and it"
    assert not splits_sentence("It falls.", (None, before), (None, "falls."))
    assert splits_sentence("The fee is due in spring and it falls later.", (None, before), (None, "falls later."))
