"""Streamed JSON with full texts: complete if they fit, truncated if not, damage reported."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from support.kit import AT, a_record

from ragwatch.errors import StoreError
from ragwatch.ports import PackedVerdict
from ragwatch.stores.texts import PackedText, pack
from ragwatch.web.streamed_samples import MAX_BYTES, VERDICT_BYTES, sample_json, samples_json

KEY = "0" * 32


def an_entry(
    seq: int = 1, *, answer: str = "so", claim: str = "so", body: bytes | None = None, kept: bool = True
) -> PackedVerdict:
    """A verdict whose texts are of these lengths."""
    place = {"key": KEY, "at": AT, "judge_name": "embedded"}
    line = pack({"id": f"r{seq}", "claims": [claim]})
    sample = PackedText(pack({"id": f"r{seq}", "question": "why?", "answer": answer}) if body is None else body)
    bare = {**place, "id": f"r{seq}", "claims": []}
    return PackedVerdict(seq, a_record(key=KEY), place, bare, PackedText(line), sample if kept else None)


def listed(entries: Sequence[PackedVerdict]) -> dict[str, Any]:
    """What a list of them says."""
    response: dict[str, Any] = json.loads(
        b"".join(samples_json(iter(entries), lambda last, sent: f"behind {last.seq}, {sent} sent"))
    )
    return response


def test_lists_are_whole_while_they_fit() -> None:
    """Lines and samples are those that were stored, half of a surrogate pair too; a sample that is gone is null."""
    response = listed([an_entry(1, answer="\ud800 é"), an_entry(2, kept=False)])
    assert response == {
        "samples": [
            {
                "verdict": {"key": KEY, "at": AT, "judge_name": "embedded", "id": "r1", "claims": ["so"]},
                "sample": {"id": "r1", "question": "why?", "answer": "\ud800 é"},
            },
            {
                "verdict": {"key": KEY, "at": AT, "judge_name": "embedded", "id": "r2", "claims": ["so"]},
                "sample": None,
            },
        ]
    }
    assert listed([]) == {"samples": []}


def test_a_list_ends_where_the_next_one_does_not_fit() -> None:
    """The response names the address of what follows, and is not larger than it may be."""
    entries = [an_entry(number, answer="x" * (MAX_BYTES // 3)) for number in range(1, 6)]
    body = b"".join(samples_json(iter(entries), lambda last, sent: f"behind {last.seq}, {sent} sent"))
    response = json.loads(body)
    assert len(body) <= MAX_BYTES
    assert ([row["verdict"]["id"] for row in response["samples"]], response["next"]) == (
        ["r1", "r2"],
        "behind 2, 2 sent",
    )


def test_one_that_never_fits_is_cut_and_does_not_end_the_search() -> None:
    """A row larger than a response is its figures and excerpts, and says so; the next one follows."""
    response = listed(
        [an_entry(1, answer="x" * MAX_BYTES), an_entry(2), an_entry(3, claim="x" * MAX_BYTES, kept=False)]
    )
    first, second = response["samples"]
    assert (first["truncated"], first["verdict"]["id"], len(first["sample"]["answer"])) == (True, "r1", 300)
    assert (second["sample"]["answer"], "truncated" in second, response["next"]) == ("so", False, "behind 2, 2 sent")
    assert listed([an_entry(3, claim="x" * MAX_BYTES, kept=False)])["samples"][0]["sample"] is None


def test_damage_costs_its_row() -> None:
    """The row has its figures and the error; the others are whole. A store that fails ends the list with why."""

    def failing() -> Iterator[PackedVerdict]:
        yield an_entry(1)
        raise StoreError("the disk is gone")

    response = listed([an_entry(1), an_entry(2, body=b"damaged"), an_entry(3)])
    assert ["error" in row for row in response["samples"]] == [False, True, False]
    assert response["samples"][1]["verdict"]["id"] == "r2"
    text = json.loads(b"".join(samples_json(failing(), lambda *_: "")))
    assert (len(text["samples"]), text["error"]) == (1, "the disk is gone")


def one(entries: Sequence[PackedVerdict]) -> dict[str, Any]:
    """What the response for one sample says."""
    pieces = sample_json(KEY, entries)
    assert pieces is not None
    body = b"".join(pieces)
    assert len(body) <= MAX_BYTES
    response: dict[str, Any] = json.loads(body)
    return response


def test_one_sample_with_every_verdict() -> None:
    """All verdicts, and the sample once."""
    response = one([an_entry(2), an_entry(1)])
    assert ([verdict["id"] for verdict in response["verdicts"]], response["sample"]["answer"]) == (["r2", "r1"], "so")
    assert set(response) == {"key", "verdicts", "sample", "feedback"}
    assert sample_json(KEY, []) is None
    assert one([an_entry(1, kept=False)])["sample"] is None


@pytest.mark.parametrize("letter", ["x", "é", "界"])
def test_a_large_sample_is_whole_whatever_its_letters(letter: str) -> None:
    """3.9 MiB of text are given whole: letters that are stored as escapes, three times as long, are written out."""
    size = int(3.9 * 2**20)
    answer = letter * (size // len(letter.encode()))
    response = one([an_entry(answer=answer)])
    assert response["sample"]["answer"] == answer
    assert "truncated" not in response


def test_what_is_larger_is_cut_and_said() -> None:
    """Of a sample that is too large, the beginning; of a verdict, its figures: `truncated` names both."""
    response = one([an_entry(2, answer="x" * 2 * MAX_BYTES, claim="y" * 2 * VERDICT_BYTES), an_entry(1)])
    assert response["truncated"] == ["verdicts[0]", "sample"]
    assert (response["verdicts"][0]["claims"], response["verdicts"][1]["claims"]) == ([], ["so"])
    assert len(response["sample"]["answer"]) > MAX_BYTES // 2


def test_a_damaged_sample_is_null_and_said() -> None:
    """Damaged texts are named in `errors`; what can be read is there."""
    entry = an_entry(1)
    broken = PackedVerdict(2, entry.verdict, entry.place, entry.bare, PackedText(b"damaged"), PackedText(b"damaged"))
    response = one([broken])
    assert (response["verdicts"][0]["claims"], response["sample"], len(response["errors"])) == ([], None, 2)
