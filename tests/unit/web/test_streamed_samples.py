"""Searches as data: streamed JSON, CSV and JSONL; complete if they fit, cut if not, damage reported."""

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.asked import XSS, get, settle
from support.hostile import HOSTILE
from support.kit import AT, a_claim, a_draw, a_record, a_verdict, an_admission, an_evidence, an_unjudged

from ragwatch.errors import StoreError
from ragwatch.ports import PackedVerdict, Query
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.stores.texts import PackedText, pack
from ragwatch.web.streamed_samples import MAX_BYTES, VERDICT_BYTES, cell, csv_chunks, rows, sample_json, samples_json

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
            {"verdict": {"key": KEY, "at": AT, "judge_name": "embedded", "id": "r2", "claims": ["so"]}, "sample": None},
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


def read(text: str) -> list[dict[str, str]]:
    """Rows as a spreadsheet reads them."""
    return list(csv.DictReader(io.StringIO(text, newline="")))


async def test_the_whole_search_is_downloaded_in_its_order(store: SqliteStore) -> None:
    """More than a page, by the filters and the order of the page, with texts and scores; unknown is empty."""
    settle(store, [f"r{number}" for number in range(60)], route="support")
    bad, missed = a_draw("bad", at=AT - 5), a_draw("missed", at=AT - 7)
    store.admit(an_admission(bad, missed))
    store.settle([a_verdict(bad, an_evidence(a_claim((0, 0)))), an_unjudged(missed)])
    whole = read((await get(store, "/samples.csv?limit=25")).text)
    lines = [json.loads(line) for line in (await get(store, "/samples.jsonl")).text.splitlines()]
    assert [row["key"] for row in whole] == [line["key"] for line in lines]
    assert len(whole) == 62
    failing = read((await get(store, "/samples.csv?quantity=faithfulness&below=0.5")).text)
    assert [(row["key"], row["faithfulness"], row["question"]) for row in failing] == [
        (bad.key, "0.0", "What do cats do?")
    ]
    (unknown,) = (row for row in whole if row["outcome"] == "unjudged")
    assert (unknown["faithfulness"], unknown["reason"], unknown["truncated"]) == ("", "timeout", "false")
    worst = read((await get(store, "/samples.csv?quantity=faithfulness&sort=worst")).text)
    assert worst[0]["key"] == bad.key
    answer = await get(store, "/samples.csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="samples.csv"'
    assert len(read((await get(None, "/samples.csv")).text)) == 0
    assert (await get(None, "/samples.jsonl?below=x")).status_code == 400


async def test_hostile_texts_are_no_formulas(store: SqliteStore) -> None:
    """Whatever question, answer and trace id are, no cell begins as a formula and each row stays one row."""
    texts = [*HOSTILE, XSS, "=HYPERLINK(1)", "+1", "-1", "@SUM(1)", "\t=1", '",=1', "a\r\n=1"]
    draws = [
        a_draw(f"h{number}", question=text, answer=text, metadata={"trace_id": text})
        for number, text in enumerate(texts)
    ]
    store.admit(an_admission(*draws))
    store.settle([a_verdict(draw) for draw in draws])
    listed = read((await get(store, "/samples.csv")).text)
    assert len(listed) == len(texts)
    for row in listed:
        for name in ("question", "answer", "trace_id"):
            assert not row[name].lstrip().startswith(("=", "+", "-", "@"))


PARTS = st.sampled_from([*"=+-@＝＋－＠﹣;,|\t\r\n \"'\ufeff\u200ba1", "\x00"])


@given(st.text(PARTS, max_size=12) | st.text(max_size=20))
def test_a_cell_is_its_text_and_marks(text: str) -> None:
    """Wherever a spreadsheet splits a text, no part of it begins as a formula; only apostrophes are added."""
    value = str(cell(text))
    for part in re.split(r"[,;|\t\r\n]", value):
        assert part.lstrip(' "\ufeff\u200b\x00')[:1] not in [*"=+-@＝＋－＠﹣"], value
    assert value[:1] not in ("\t", "\r", "\n")
    assert value.replace("'", "") == text.replace("'", "")
    assert cell(f"{text}=" if text[-1:].isalnum() else "a=1") in (f"{value}=", "a=1")


def test_a_long_cell_takes_linear_time() -> None:
    """A mebibyte of separators is read once."""
    assert cell(";" * (1 << 20)) == ";" * (1 << 20)


def test_the_last_row_of_a_download_says_what_is_missing(store: SqliteStore) -> None:
    """A store that breaks, after what was read before; the limit that was reached; since when words were searched.

    A complete download has no such row.
    """
    settle(store, ["a", "b", "c"])

    def broken() -> Iterator[Any]:
        yield from store.entries(Query())
        raise StoreError("disk I/O error")

    def told(**parts: Any) -> list[str]:
        lines = list(rows(store.entries(Query()), **parts))
        assert sum("key" in line for line in lines) == min(parts.get("max_rows", 3), 3)
        return [line["error"] for line in lines if "key" not in line]

    *_, last = read(b"".join(csv_chunks(rows(broken()), ["faithfulness"])).decode())
    assert (last["key"], last["error"]) == ("", "the store cannot be read: disk I/O error")
    assert told(max_rows=3) == []
    (limit,) = told(max_rows=2)
    assert limit.startswith("more than 2 answers: narrow the search")
    (searched,) = told(examined_since=0.0)
    assert searched.startswith("answers before 1970-01-01T00:00:00+00:00 were not searched: narrow the search")


async def test_the_page_links_downloads_and_orders(store: SqliteStore) -> None:
    """Links keep the search; a column leads to the worst of its quantity, without bounds of another one."""
    settle(store, ["a"])
    body = (await get(store, "/samples?route=search&quantity=faithfulness&above=0.1&limit=25")).text
    assert 'href="samples.csv?route=search&amp;quantity=faithfulness&amp;above=0.1"' in body
    assert 'href="?route=search&amp;above=0.1&amp;limit=25&amp;quantity=faithfulness&amp;sort=worst"' in body
    assert 'href="?route=search&amp;limit=25&amp;quantity=answer_relevancy&amp;sort=worst"' in body
