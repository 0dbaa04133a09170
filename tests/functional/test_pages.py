"""The pages in a real browser, over a real daemon: they are painted, and keep to their Content-Security-Policy."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest
from functional.daemon import RagwatchProcess, record, write_config
from support.answering import answering
from support.chromium import DESK, PHONE, Browser, chromium

from ragwatch.web.guard import HEADERS

XSS = "<script>alert(1)</script><img src=x onerror=alert(1)><style>body{display:none}</style>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser without a window."""
    path = chromium()
    if path is None:
        pytest.skip("no browser: Debian package `chromium`")
    with Browser(path) as made:
        yield made


def painted(browser: Browser, folder: Path, address: str, window: tuple[int, int] = DESK) -> tuple[int, list[str]]:
    """Number of different lines of pixels on a page, and what the browser has to complain of."""
    browser.complaints.clear()
    browser.size(window)
    browser.open(address)
    browser.picture(folder / "picture.png", whole=False)
    return lines_of((folder / "picture.png").read_bytes()), list(browser.complaints)


def lines_of(png: bytes) -> int:
    """Number of different lines of a picture, as PNG stores them; a blank one has three at most."""
    data, at = b"", 8
    while at < len(png):
        size, kind = int.from_bytes(png[at : at + 4]), png[at + 4 : at + 8]
        data += png[at + 8 : at + 8 + size] if kind == b"IDAT" else b""
        at += size + 12
    raw, height = zlib.decompress(data), int.from_bytes(png[20:24])
    width = len(raw) // height
    return len({raw[row * width : (row + 1) * width] for row in range(height)})


@contextmanager
def serving(body: bytes) -> Iterator[str]:
    """A page with the headers of ours, on a port of this machine."""
    with answering(lambda _: (200, body, {**HEADERS, "content-type": "text/html; charset=utf-8"})) as (address, _):
        yield f"{address}/"


def test_a_broken_page_is_noticed(browser: Browser, tmp_path: Path) -> None:
    """What the next test looks at does tell: a blank page has few lines, a forbidden script is complained of."""
    with serving(b"<!doctype html><link rel=icon href='data:,'><body>") as address:
        lines, complaints = painted(browser, tmp_path, address)
    assert lines <= 3
    assert complaints == []
    with serving(
        b"<!doctype html><link rel=icon href='data:,'><p style='color:red'>x<script>alert(1)</script>"
    ) as address:
        _, complaints = painted(browser, tmp_path, address)
    assert len(complaints) == 2


def test_every_page_is_painted_and_keeps_its_policy(browser: Browser, tmp_path: Path) -> None:
    """On a desk and on a phone, with hostile text in every field: a picture, and no complaint of the browser."""
    config = write_config(tmp_path)
    invented = record(1, question=XSS, answer=f"The old mill is {XSS} nine hundred metres high.", metadata={XSS: XSS})
    contexts = [{"id": XSS, "text": f"The old mill stands by the river. {XSS}", "score": 0.5}]
    (tmp_path / "log" / "app.jsonl").write_text(f"{record(0)}\n{invented}\n{record(2, contexts=contexts)}\n")
    with RagwatchProcess(config) as daemon:
        daemon.wait_until_serving()
        daemon.wait_for('ragwatch_samples_judged_total{judge="embedded",route="search"}', 3.0)
        found = json.loads(daemon.get("/api/v1/samples")[1])["samples"]
        pages = [f"/samples/{each['verdict']['key']}" for each in found]
        pages += [
            "/",
            "/samples",
            "/samples?stage=generation",
            "/samples?colour=red",
            "/canaries",
            "/drift",
            "/causes",
            "/segments/step",
        ]
        pages += [
            "/label",
            f"/label?annotator=ann&key={found[0]['verdict']['key']}",
            "/trends",
            "/trends?range=90d",
            "/changes?at=1h&route=search",
        ]
        fields = ("text", "context", "top_context", f"metadata.{XSS}")
        pages += [f"/samples?{urlencode(dict.fromkeys(fields, XSS))}", f"/samples?{urlencode({'text': '-'})}"]
        for page in pages:
            for window in (DESK, PHONE):
                lines, complaints = painted(browser, tmp_path, daemon.address + page, window)
                assert complaints == [], page
                assert lines > 50, page
