"""Rendered pages: hostile text is escaped, and all links are relative."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.asked import get
from support.snapshots import AT, JUDGE, KEY, small

from ragwatch.core.snapshot import Gauge
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.web.overview import overview
from ragwatch.web.pages import clock, page, size
from ragwatch.web.scope import PageScope

SCOPE = PageScope(("app",), ("search", "support"), (JUDGE,), ("15m", "1h"), {"faithfulness": 0.7})
DRIFT = {(Gauge.DRIFT_ALARM, ("faithfulness", "search")): 1.0}
HOSTILE = "</td><script>alert(1)</script><img src=x onerror=alert(1)> javascript:alert(1) \" ' &"


def html(question: str | None = "Why?", scope: PageScope = SCOPE) -> str:
    """The overview page with one failing answer."""
    place = {"key": KEY, "at": AT, "route": "search", "stage": "retrieval", "judge": JUDGE}
    score = {"quantity": "context_precision", "score": 0.25}
    failing: Any = [{**place, **score, "question": question, "answer": question}]
    view = overview(small(), scope, now=AT, problems=[f"problem {question}"], failing=failing)
    return page("overview.html", {"version": "1", **view})


def test_hostile_text_is_escaped_everywhere() -> None:
    """No text of a sample, a problem or a configured name becomes an element."""
    page = html(HOSTILE, PageScope((HOSTILE,), (HOSTILE,), (HOSTILE,), (HOSTILE,)))
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_no_script_no_inline_style_no_foreign_resource() -> None:
    """The page keeps to its own Content-Security-Policy: links and resources are relative, nothing is inline."""
    page = html()
    assert re.findall(r"<script|\sstyle=|\son\w+=|javascript:", page) == []
    assert [link for link in re.findall(r'(?:href|src)="([^"]*)"', page) if re.match(r"(?!data:)[a-z]+:|/", link)] == []


def test_what_an_engineer_looks_for_is_there() -> None:
    """Value, interval, number, coverage, age, stage, reason and sample stand on the page."""
    page = html("How long may I send it back?")
    for text in ("0.600", "0.550–0.650", "≥ 0.70", "coverage 75 %", "1 min ago", "generation 33 %", "torn json"):
        assert text in page
    assert "this judge does not score it" not in page  # rows that the judge cannot fill are hidden
    assert f'href="samples/{KEY}?judge={JUDGE}"' in page
    assert "How long may I send it back?" in page


def test_it_is_said_what_an_interval_is_good_for() -> None:
    """One look; for those who look all day there is another band. Where no interval is shown, nothing is said."""
    assert "An interval holds for a single look at its window." in html()
    silent = page("overview.html", {"version": "1", **overview(None, SCOPE, now=AT)})
    assert "An interval holds" not in silent


def test_a_figure_that_is_past_is_marked() -> None:
    """Where the newest answer is older than the window, the figure is stale, and says so; else it does not."""
    stuck = small(AT - 4000)
    shown = page("overview.html", {"version": "1", **overview(stuck, SCOPE, now=AT, window="1h")})
    assert shown.count("⚠ stale") == 1
    assert "stale" not in html()


def test_the_way_leads_to_every_page() -> None:
    """All pages, and the answers behind a figure: below its threshold, or above it where low is good."""
    page = html()
    for link in ("samples", "canaries", "drift", "samples?stage=generation", "samples?outcome=unjudged"):
        assert f'href="{link}"' in page
    chosen = f"samples?route=search&amp;judge={JUDGE}&amp;quantity=faithfulness&amp;below=0.7"
    assert f'href="{chosen}"' in page


def test_a_forgotten_question_is_not_invented() -> None:
    """Once retention has taken a sample, the page says so."""
    assert "text no longer stored" in html(None)


def test_the_empty_page() -> None:
    """Before anything is known the page still stands."""
    shown = page("overview.html", {"version": "1", **overview(None, PageScope(), now=AT)})
    assert "No data yet" in shown
    assert "No digest has run yet" in shown


@pytest.mark.parametrize("at", [1e300, float("nan"), -1e18])
def test_an_impossible_instant_is_unknown(at: float) -> None:
    """A time that a log made up cannot break a page."""
    assert clock(at) == "unknown"


def test_very_large_sizes() -> None:
    """Sizes beyond the last unit keep it."""
    assert size(3000 * 1024**4) == "3000.0 TiB"


@pytest.mark.parametrize(
    "path",
    [
        *("/samples", f"/samples/{KEY}", f"/samples/{KEY}/prompt?judge={JUDGE}", "/samples.csv", "/samples.jsonl"),
        *(
            "/causes",
            "/trends",
            "/changes?at=1h&route=search",
            "/drift",
            "/segments/step",
            "/canaries",
            "/incident.md?since=1h",
        ),
    ],
)
async def test_a_store_that_cannot_be_read_is_told(path: str, tmp_path: Path) -> None:
    """A 503 with the reason, not an empty page or file."""
    store = SqliteStore(tmp_path)
    store.close()
    answer = await get(store, path, scope=replace(SCOPE, suites=("docs",)), snapshot=replace(small(), gauges=DRIFT))
    assert (answer.status_code, "closed" in answer.text) == (503, True), answer.text


async def test_pages_load_again_where_that_was_chosen(store: SqliteStore) -> None:
    """A page that reloads takes a reader's place away: it does so with `refresh=yes` alone, and says how to stop."""
    for path in ("/", "/drift", "/canaries", "/causes", "/causes?window=6h", "/routes?route=search"):
        still = await get(store, path)
        assert (still.status_code, "http-equiv" in still.text) == (200, False)
        sign = "&" if "?" in path else "?"
        assert f"{sign.replace('&', '&amp;')}refresh=yes" in still.text
        moving = await get(store, f"{path}{sign}refresh=yes")
        assert '<meta http-equiv="refresh" content="30">' in moving.text, path
        assert "Stop</a>" in moving.text
