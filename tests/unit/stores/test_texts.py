"""Texts: packed JSON is read in pieces or as far as a limit, and whatever is not what was written is told."""

from __future__ import annotations

import json
import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.errors import StoreError
from ragwatch.stores.rows import pack
from ragwatch.stores.texts import EXCERPT_CHARS, PIECE_BYTES, PackedText, excerpt

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


def test_pieces_are_the_whole_text() -> None:
    """Pieces together are what was packed, none is large, and `size` counts them."""
    text = pack({"answer": random.Random(1).randbytes(1 << 20).hex()})
    pieces = list(PackedText(text).pieces())
    assert b"".join(pieces) == zlib.decompress(text)
    assert max(map(len, pieces)) <= PIECE_BYTES
    assert PackedText(text).size() == len(zlib.decompress(text))


@pytest.mark.costly
@pytest.mark.parametrize("most", range(1, len(JSON) + 2))
def test_a_beginning_is_a_part_of_the_record(most: int) -> None:
    """Wherever the limit cuts, also within an escape, the fields that are read begin as those that were written."""
    fields, whole = PackedText(PACKED).beginning(most)
    assert list(fields) == list(RECORD)[: len(fields)]
    complete = list(fields)[:-1]
    assert [paired(fields[name]) for name in complete] == [paired(RECORD[name]) for name in complete]
    assert (fields == RECORD) or not whole


@given(st.dictionaries(st.text(), st.text(st.characters(exclude_categories=())), min_size=1), st.integers(2, 400))
def test_no_text_breaks_a_beginning(record: dict[str, str], most: int) -> None:
    """Any text, with lone surrogates and escapes, is read as far as the limit without an error."""
    fields, _ = PackedText(pack(record)).beginning(most)
    assert set(fields) <= set(record)


def test_excerpts_are_short_and_need_only_the_first_bytes() -> None:
    """Id, question and answer of the first kilobytes, cut; what lies beyond them is left out, not guessed."""
    noise = random.Random(1).randbytes(1 << 20).hex()
    near = pack({"id": "r1", "question": "q" * 1000, "contexts": [], "answer": noise})[:16384]
    far = pack({"id": "r1", "question": None, "contexts": [{"text": noise}], "answer": "so"})[:16384]
    assert excerpt(near) == {
        "id": "r1",
        "question": "q" * (EXCERPT_CHARS - 1) + "…",
        "answer": noise[: EXCERPT_CHARS - 1] + "…",
    }
    assert excerpt(far) == {"id": "r1", "question": None}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no zlib",
        PACKED[:-2],
        PACKED[:20] + b"zz" + PACKED[22:],
        None,
        "a text",
        7,
        zlib.compress(b"[]"),
        zlib.compress(b"\xff\xfe"),
    ],
)
def test_damage_is_told(body: object) -> None:
    """What is not a packed JSON object to its end is an error of the store, before anything of it is sent."""
    with pytest.raises(StoreError, match=r"a stored text is damaged: .*; restore a copy"):
        PackedText(body).size()


@pytest.mark.parametrize("body", [b"", b"no zlib", None, "a text", zlib.compress(b"[]"), zlib.compress(b"\xff\xfe")])
def test_damage_at_the_beginning_is_told(body: object) -> None:
    """A beginning that cannot be read is an error of the store, too."""
    with pytest.raises(StoreError, match="a stored text is damaged"):
        PackedText(body).beginning(100)
