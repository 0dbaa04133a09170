"""Rows and texts: what is packed comes back, in pieces or as far as a limit, and what is damaged is an error."""

from __future__ import annotations

import json
import random
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kit import a_sample, a_verdict, an_evidence

from ragwatch.errors import StoreError
from ragwatch.formats import build
from ragwatch.model.sample import Context, RelevantContext, Role, Turn
from ragwatch.statistics.tally import Tally
from ragwatch.stores.counting import tallies_of
from ragwatch.stores.rows import sample_of, verdict_row
from ragwatch.stores.texts import EXCERPT_CHARS, PIECE_BYTES, PackedText, excerpt, pack, unpack

texts = st.text(st.characters(exclude_categories=()))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts, st.lists, max_leaves=5
)


@given(st.dictionaries(texts, values, max_size=5))
def test_what_is_packed_comes_back(value: dict[str, Any]) -> None:
    """Every JSON value survives, lone surrogates and control characters too."""
    assert unpack(pack(value)) == value


turns = st.builds(Turn, st.sampled_from(Role), texts)


@given(texts, st.none() | texts, st.dictionaries(texts, values, max_size=3), st.lists(turns, max_size=3).map(tuple))
def test_samples_come_back(
    answer: str, question: str | None, metadata: dict[str, Any], history: tuple[Turn, ...]
) -> None:
    """A sample is what its canonical record says."""
    sample = a_sample(answer=answer, question=question, metadata=metadata, history=history)
    assert sample_of(unpack(pack(sample.to_record()))) == sample


def test_what_is_seldom_known_comes_back() -> None:
    """Grades, steps, dates; none is another thing than unknown; version 0.1.0 stored no history."""
    rare: list[dict[str, Any]] = [
        {"contexts": (Context("Tea.", "d1", 0.5, "search", 1.7e9), Context("Milk."))},
        {"relevant": (RelevantContext("c1", None, 2), RelevantContext(None, "One.", 1))},
        {"relevant": ()},
        {"relevant": None},
    ]
    for sample in (a_sample(**parts) for parts in rare):
        assert sample_of(unpack(pack(sample.to_record()))) == sample
        assert build("canonical").read(sample.to_record(), "log:1") == sample
    record = a_sample(contexts=(Context("Milk."),)).to_record()
    assert "updated_at" not in record["contexts"][0]
    del record["history"]
    assert sample_of(unpack(pack(record))) == a_sample(contexts=(Context("Milk."),))


def test_failing_means_a_faulty_stage() -> None:
    """A judged row outlives others when its stage names a fault; an unknown stage does not."""
    read = (an_evidence((1, 0)), an_evidence((0, 0)), an_evidence(relevant=(None, None), address=None))
    assert [verdict_row(a_verdict(evidence=evidence))["failing"] for evidence in read] == [0, 1, 0]


def test_counters_come_back_by_the_names_of_their_labels() -> None:
    """In whatever order a version wrote them; one that is not known costs no other, and is counted."""
    stored = ("rejected", '["app", "json"]', '["source", "reason"]', 3.0)
    other_order = ("rejected", '["json","app"]', '["reason","source"]', 2.0)
    assert tallies_of([stored, other_order]) == {(Tally.REJECTED, ("app", "json")): 5}
    assert tallies_of([("seen", '["app"]', None, 1.0)]) == {(Tally.SEEN, ("app",)): 1}
    unknown: dict[str, tuple[str, str, str | None]] = {
        "a label more": ("seen", '["app", "eu"]', '["source", "region"]'),
        "a label less": ("rejected", '["app"]', '["source"]'),
        "another label": ("rejected", '["app", "json"]', '["source", "cause"]'),
        "no names, and another number": ("seen", '["app", "eu"]', None),
        "more names than values": ("seen", '["app"]', '["source", "source"]'),
        "a number": ("seen", "[1]", '["source"]'),
        "a list": ("seen", "[[]]", '["source"]'),
        "no list": ("seen", "5", '["source"]'),
        "no JSON": ("seen", "[", '["source"]'),
        "names that are no JSON": ("seen", '["app"]', "{}["),
        "another counter": ("laughs", '["app"]', '["source"]'),
    }
    for why, row in unknown.items():
        known = tallies_of([(*row, 4.0), ("seen", '["app"]', '["source"]', 1.0)])
        assert known == {(Tally.SEEN, ("app",)): 1, (Tally.UNKNOWN_COUNTERS, (row[0],)): 1}, why


RECORD = {
    "id": "r1",
    "question": "Wh\ud800y é 😀 \\ud800?",
    "contexts": [{"id": None, "text": "x" * 50 + "😀" * 5, "score": 1.0}],
    "answer": "half \ud83d of a pair",
    "metadata": {"a": [1, {"b": None}]},
}
PACKED = pack(RECORD)
JSON = zlib.decompress(PACKED)


def paired(value: object) -> object:
    """A JSON value, with a replacement character for each half of a surrogate pair."""
    text = json.dumps(value, ensure_ascii=False)
    return json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def test_pieces_and_excerpts_of_a_text() -> None:
    """Pieces together are the text; an excerpt is what stands in its first kilobytes, cut and not guessed."""
    text = pack({"answer": random.Random(1).randbytes(1 << 20).hex()})
    pieces = list(PackedText(text).pieces())
    assert b"".join(pieces) == zlib.decompress(text)
    assert max(map(len, pieces)) <= PIECE_BYTES
    assert PackedText(text).size() == len(zlib.decompress(text))
    noise = random.Random(1).randbytes(1 << 20).hex()
    near = pack({"id": "r1", "question": "q" * 1000, "contexts": [], "answer": noise})[:16384]
    far = pack({"id": "r1", "question": None, "contexts": [{"text": noise}], "answer": "so"})[:16384]
    assert excerpt(near) == {
        "id": "r1",
        "question": "q" * (EXCERPT_CHARS - 1) + "…",
        "answer": noise[: EXCERPT_CHARS - 1] + "…",
    }
    assert excerpt(far) == {"id": "r1", "question": None}


def test_a_beginning_is_a_part_of_the_record() -> None:
    """Wherever the limit cuts, also within an escape, the fields that are read begin as those that were written."""
    for most in range(1, len(JSON) + 2):
        fields, whole = PackedText(PACKED).beginning(most)
        assert list(fields) == list(RECORD)[: len(fields)], most
        complete = list(fields)[:-1]
        assert [paired(fields[name]) for name in complete] == [paired(RECORD[name]) for name in complete], most
        assert (fields == RECORD) or not whole, most


@given(st.dictionaries(st.text(), st.text(st.characters(exclude_categories=())), min_size=1), st.integers(2, 400))
def test_no_text_breaks_a_beginning(record: dict[str, str], most: int) -> None:
    """Any text, with lone surrogates and escapes, is read as far as the limit without an error."""
    fields, _ = PackedText(pack(record)).beginning(most)
    assert set(fields) <= set(record)


def test_damage_is_told() -> None:
    """What is not a packed JSON object to its end is an error of the store, before anything of it is sent.

    A beginning that cannot be read is one, too.
    """
    unreadable: list[object] = [b"", b"no zlib", None, "a text", 7, zlib.compress(b"[]"), zlib.compress(b"\xff\xfe")]
    for body in (*unreadable, PACKED[:-2], PACKED[:20] + b"zz" + PACKED[22:]):
        with pytest.raises(StoreError, match=r"a stored text is damaged: .*; restore a copy"):
            PackedText(body).size()
    for body in unreadable:
        with pytest.raises(StoreError, match="a stored text is damaged"):
            PackedText(body).beginning(100)
