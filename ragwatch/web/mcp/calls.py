"""One call of a tool: its arguments, where it reads, and how its reply is kept small."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from ragwatch.core.canary.metric import CanaryMetric
from ragwatch.model.quantities import Quantity
from ragwatch.model.signals import Signal
from ragwatch.web.json_body import dumps
from ragwatch.web.mcp.fence import NAME_CHARS, Fence
from ragwatch.web.pages import iso

BUDGET_CHARS = 6000
"""Of one reply as JSON: 1,500 tokens of about 4 characters."""
_OWN_NAMES = frozenset({*map(str, Quantity), *map(str, Signal), *map(str, CanaryMetric), "degraded"})

Read = Callable[[str, Mapping[str, str | None]], Awaitable[Mapping[str, Any]]]
"""Returns the reply at a path below `/api/v1`, with a query; an empty one where there is none of this name.

It raises `RagwatchError` if the query is refused, or ragwatch cannot be asked.
"""
Rows = Sequence[tuple[str, object]]
"""Rows of a reply with the name of their list, the most important first."""


class RefusedCallError(Exception):
    """A call cannot be answered.

    Args:
        advice: What is wrong and what to write instead, in our own words.
        foreign: Names or texts of others that belong to it.
    """

    def __init__(self, advice: str, foreign: str = "") -> None:
        super().__init__(advice)
        self.advice, self.foreign = advice, foreign


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool.

    Attributes:
        arguments: Those that are given, checked for their names and types.
        read: Reads the API.
        address: Address of the pages.
        fence: The fence of the reply.
    """

    arguments: Mapping[str, str]
    read: Read
    address: str
    fence: Fence

    def given(self, *names: str) -> dict[str, str | None]:
        """Return these arguments as a query; None for those that are not given."""
        return {name: self.arguments.get(name) for name in names}

    def link(self, page: str, query: Mapping[str, str | None] | None = None) -> str | None:
        """Return the address of a page. One with a query holds names of others, so that it stands in the fence."""
        given = {name: value for name, value in (query or {}).items() if value}
        address = f"{self.address}/{page}"
        return self.fence(f"{address}?{urlencode(given, errors='replace')}", 400) if given else address

    def name(self, text: str) -> str | None:
        """Return the name of a quantity: our own ones as they are, those of configured criteria in the fence."""
        return text if text in _OWN_NAMES else self.fence(text)

    async def known(self, argument: str, names: Callable[[Mapping[str, Any]], Iterable[str]]) -> str | None:
        """Return an argument that names something of the overview; None if it is not given.

        Raises:
            RefusedCallError: There is none of this name.
        """
        wanted = self.arguments.get(argument)
        if wanted is None:
            return None
        choices = list(dict.fromkeys(names(await self.read("/snapshot", {}))))
        if wanted not in choices:
            raise RefusedCallError(f"{argument}: there is none of this name; write one of these:", ", ".join(choices))
        return wanted

    async def route(self) -> str | None:
        """Return the route that is asked for; None for all. Raises RefusedCallError: there is none of this name."""
        return await self.known("route", lambda view: (route["route"] for route in view["routes"]))

    def reply(
        self, head: Mapping[str, object], lists: Sequence[str], rows: Rows, most: int | None = None
    ) -> dict[str, object]:
        """Return a reply within its budget. Raises RefusedCallError: there is nothing at the cursor."""
        start = int(self.arguments.get("more", "0"))
        if start and start >= len(rows):
            raise RefusedCallError("more: there is nothing behind this cursor; leave it out to begin again")
        reply: dict[str, Any] = {"fence": self.fence.mark, **_rounded(head), **{name: [] for name in lists}}
        left = BUDGET_CHARS - len(dumps(reply).decode()) - len(',"more":"000000"')
        end = start
        for name, row in rows[start : None if most is None else start + most]:
            line = _rounded(row)
            left -= len(dumps(line).decode()) + 1
            if left < 0 and end > start:
                break
            reply[name].append(line)
            end += 1
        return {**reply, "more": str(end) if end < len(rows) else None}

    def texts(self, texts: Iterable[object], most: int = 5, limit: int = NAME_CHARS) -> list[str | None]:
        """Return the first of several foreign texts, each in the fence."""
        return [self.fence(text, limit) for _, text in zip(range(most), texts, strict=False)]


def time_of(at: float | None) -> str | None:
    """Return an instant in UTC as ISO 8601."""
    return None if at is None else iso(at)


def _rounded(value: Any) -> Any:  # noqa: ANN401 - any value of JSON
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, Mapping):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list | tuple) else value
