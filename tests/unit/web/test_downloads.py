"""Downloads of a search: every row in order, hostile cells harmless, damage named, and recorded as read."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.asked import XSS, get, settle
from support.hostile import HOSTILE
from support.kit import AT, a_claim, a_draw, a_verdict, an_admission, an_evidence, an_unjudged

from ragwatch.errors import StoreError
from ragwatch.ports import Query
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.web.streamed_samples import cell, csv_chunks, rows


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


def test_a_store_that_breaks_is_named_in_the_last_row(store: SqliteStore) -> None:
    """What was read before is there."""
    settle(store, ["a"])

    def broken() -> Iterator[Any]:
        yield from store.entries(Query())
        raise StoreError("disk I/O error")

    *_, last = read(b"".join(csv_chunks(rows(broken()), ["faithfulness"])).decode())
    assert (last["key"], last["error"]) == ("", "the store cannot be read: disk I/O error")


@pytest.mark.parametrize(("limit", "told"), [(3, []), (2, ["more than 2 answers: narrow the search"])])
def test_a_download_that_is_not_complete_says_so(store: SqliteStore, limit: int, told: list[str]) -> None:
    """Its last row names the limit that it reached; a complete one has no such row."""
    settle(store, ["a", "b", "c"])
    lines = list(rows(store.entries(Query()), max_rows=limit))
    assert [line["error"].partition(",")[0] for line in lines if "key" not in line] == told
    assert sum("key" in line for line in lines) == limit


def test_a_download_says_back_to_when_it_searched(store: SqliteStore) -> None:
    """The last row, where words had more answers than are looked at."""
    settle(store, ["a"])
    (line,) = [line for line in rows(store.entries(Query()), examined_since=0.0) if "key" not in line]
    assert line["error"].startswith("answers before 1970-01-01T00:00:00+00:00 were not searched: narrow the search")


async def test_the_page_links_downloads_and_orders(store: SqliteStore) -> None:
    """Links keep the search; a column leads to the worst of its quantity, without bounds of another one."""
    settle(store, ["a"])
    body = (await get(store, "/samples?route=search&quantity=faithfulness&above=0.1&limit=25")).text
    assert 'href="samples.csv?route=search&amp;quantity=faithfulness&amp;above=0.1"' in body
    assert 'href="?route=search&amp;above=0.1&amp;limit=25&amp;quantity=faithfulness&amp;sort=worst"' in body
    assert 'href="?route=search&amp;limit=25&amp;quantity=answer_relevancy&amp;sort=worst"' in body
