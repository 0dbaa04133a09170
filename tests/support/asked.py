"""Pages as a client asks for them, and what a browser makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any

import httpx

from ragwatch.board import Board
from ragwatch.core.snapshot import Snapshot
from ragwatch.ports import Store
from ragwatch.web import PageScope, build_app
from support.kit import AT, JUDGE, a_draw, a_verdict, an_admission

SCOPE = PageScope(("app",), ("search", "support"), (JUDGE, "claude"), ("1h",))
XSS = "</td></textarea><script>alert(1)</script><img src=x onerror=alert(1)><a href='javascript:1'>x</a> \" ' &"


class Reading(HTMLParser):
    """What a browser makes of a page: its elements, their attributes, and its text."""

    def __init__(self, body: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(body)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element."""
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        """Text."""
        self.text += data


async def get(
    store: Store | None,
    path: str,
    *,
    scope: PageScope = SCOPE,
    snapshot: Snapshot | None = None,
    base: str = "http://localhost",
) -> httpx.Response:
    """A page or a reply of the application over a store and the latest Snapshot."""
    board = Board()
    if snapshot is not None:
        board.publish(snapshot)
    asked = build_app(board=board, render=lambda _, __: (b"", ""), store=store, scope=lambda: scope, clock=lambda: AT)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=asked), base_url=base) as client:
        return await client.get(path)


def settle(store: Store, names: Sequence[str], ages: Sequence[float] | None = None, **parts: Any) -> None:
    """Answers with a good verdict each, the first the newest."""
    draws = [a_draw(name, at=AT - (ages[i] if ages else i), **parts) for i, name in enumerate(names)]
    store.admit(an_admission(*draws))
    store.settle([a_verdict(draw) for draw in draws])
