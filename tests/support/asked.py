"""Pages as a client asks for them, and what a browser makes of them."""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from html.parser import HTMLParser
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.types import ASGIApp

from ragwatch.board import Board
from ragwatch.errors import StoreError
from ragwatch.model.evidence import Evidence
from ragwatch.model.sample import Draw
from ragwatch.ports import Store
from ragwatch.statistics.labels.label import from_record
from ragwatch.statistics.snapshot import Snapshot
from ragwatch.statistics.verdict import Reading as JudgeReading
from ragwatch.web import Access, PageScope, Right, Server, Tls, Token, build_app
from support.kit import AT, JUDGE, a_draw, a_verdict, an_admission, an_evidence
from support.patience import DEADLINE

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


class EmptyStore:
    """A store that holds nothing."""

    def entries(self, _: object) -> Iterator[Any]:
        """No verdict."""
        return iter(())

    def nothing(self, *_: object) -> None:
        """Neither feedback nor a bound on what was searched."""

    feedback_of = examined_since = nothing

    def __getattr__(self, _: str) -> Callable[..., list[Any]]:
        return lambda *_: []


async def no_operation(*_: object) -> Any:
    """Refuse to erase, or to have answers read again."""
    raise StoreError("there is nothing")


def application(snapshot: Snapshot | None = None, **parts: Any) -> Starlette:
    """The application over the latest Snapshot; its series and its store are empty, and its clock stands still."""
    board = Board()
    if snapshot is not None:
        board.publish(snapshot)
    stand_ins = {
        "board": board,
        "render": lambda *_: (b"x 1\n", "text/plain"),
        "clock": lambda: AT,
        "store": EmptyStore(),
        "labels": Words,
        "prompts": lambda *_: None,
        "forget": no_operation,
        "rejudge": no_operation,
    }
    return build_app(**stand_ins | {name: part for name, part in parts.items() if part is not None})  # type: ignore[arg-type]


@asynccontextmanager
async def asking(app: ASGIApp, base: str = "http://localhost", **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application; what breaks inside comes back as a 500."""
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=base, **options) as client:
        yield client


@asynccontextmanager
async def serving(app: ASGIApp, tls: Callable[[], Tls | None] = lambda: None) -> AsyncIterator[int]:
    """The real server of an application; its port."""
    server = Server(app, "127.0.0.1", 0, tls)
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(server.serve(started=port.set_result))
    try:
        yield await asyncio.wait_for(port, DEADLINE)
    finally:
        server.stop()
        await asyncio.wait_for(task, DEADLINE)


def bearer(name: str) -> dict[str, str]:
    """The header of the token of a name, which is the name behind zeros."""
    return {"Authorization": f"Bearer {name:0>32}"}


def by_token(**rights: Iterable[Right]) -> Access:
    """Nobody but the tokens of these names has a right."""
    digests = {name: hashlib.sha256(f"{name:0>32}".encode()).digest() for name in rights}
    tokens = tuple(Token(name, digests[name], frozenset(given)) for name, given in rights.items())
    return Access(tokens=tokens, anonymous=frozenset())


class Words:
    """A label service that keeps labels in a list, and gives each annotator one task."""

    per_hour = 3

    def __init__(self, error: Exception | None = None) -> None:
        self.kept: list[Mapping[str, Any]] = []
        self.error = error
        self.asked: list[str] = []
        self.revoked: list[tuple[str, str | None]] = []

    def tasks(self, annotator: str, count: int) -> list[dict[str, Any]]:
        """One task, whose key is the name of who asked."""
        self.asked.append(annotator)
        if self.error is not None:
            raise self.error
        return [{"key": annotator, "count": count}]

    def queue(self, _: str) -> dict[str, Any]:
        """Nothing was given to anybody."""
        return {"given": [], "open": [], "done": 0, "twice": 0, "last": None}

    def put(self, records: Iterable[Mapping[str, Any]]) -> dict[str, int]:
        """Keep what is a label."""
        labels = [from_record(record).to_record() for record in records]
        self.kept += labels
        return {"new": len(labels), "replaced": 0, "unmatched": 0}

    def revoke(self, key: str, annotator: str | None = None) -> int:
        """Note what is taken back."""
        self.revoked.append((key, annotator))
        return 1

    def labels(self, *_: object) -> list[dict[str, Any]]:
        """What was kept."""
        return [dict(label) for label in self.kept]

    def pruned_until(self) -> float | None:
        """Nothing was deleted."""
        return None


async def get(
    store: Store | None,
    path: str,
    *,
    scope: PageScope = SCOPE,
    snapshot: Snapshot | None = None,
    base: str = "http://localhost",
) -> httpx.Response:
    """A page or a reply of the application over a store and the latest Snapshot."""
    async with asking(application(snapshot, store=store, scope=lambda: scope), base) as client:
        return await client.get(path)


def judged(store: Store, draw: Draw, evidence: Evidence | None = None, reading: JudgeReading | None = None) -> Draw:
    """A verdict on an answer."""
    store.admit(an_admission(draw))
    store.settle([a_verdict(draw, evidence, reading)])
    return draw


def stays_text(page: Reading, model: Reading, text: str) -> None:
    """Check that a page has the elements of a harmless one, no script and only our links; and the text can be read."""
    assert page.tags == model.tags, text
    assert [name for name, _ in page.attributes] == [name for name, _ in model.attributes], text
    assert [name for name, _ in page.attributes if name == "style" or name.startswith("on")] == [], text
    links = [value for name, value in page.attributes if name in ("href", "src", "action")]
    assert [link for link in links if re.match(r"(?!data:,$)([a-z]+:|/)", link, re.IGNORECASE)] == [], text
    seen = text.encode("utf-8", "replace").decode()
    assert " ".join(seen[:60].split()) in " ".join(page.text.split())


def settled(store: Store, draws: Sequence[Draw], evidences: Iterable[Evidence | None]) -> None:
    """A verdict on every answer, by its evidence."""
    store.admit(an_admission(*draws))
    store.settle([a_verdict(draw, evidence) for draw, evidence in zip(draws, evidences, strict=True)])


def released(store: Store, moments: Sequence[float], *, fails: bool) -> None:
    """Judged answers of one release, which all fail or do not."""
    draws = [a_draw(f"r{at}", at=at, metadata={"release": "v2" if fails else "v1"}) for at in moments]
    settled(store, draws, [an_evidence((0, 0)) if fails else None] * len(draws))


def settle(store: Store, names: Sequence[str], ages: Sequence[float] | None = None, **parts: Any) -> None:
    """Answers with a good verdict each, the first the newest."""
    draws = [a_draw(name, at=AT - (ages[i] if ages else i), **parts) for i, name in enumerate(names)]
    settled(store, draws, [None] * len(draws))
