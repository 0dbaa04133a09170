"""One call of a tool: its arguments, where it reads, the fence of its reply, and how the reply is kept small.

Who writes a question or a document may write instructions for an assistant into it. Such a text, and every name that
others choose, stands between two marks that are drawn for each reply, and cannot hold them itself.
"""

import secrets
import unicodedata
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints, is_typeddict
from urllib.parse import urlencode

from ragwatch.model.quantities import Quantity
from ragwatch.model.signals import Signal
from ragwatch.statistics.canary.metric import CanaryMetric
from ragwatch.web.json_values import dumps
from ragwatch.web.mcp.replies import NAME_CHARS, Dated, Fenced, Named
from ragwatch.web.pages.pages import iso

BUDGET_CHARS = 6000
"""Of one reply as JSON: 1,500 tokens of about 4 characters."""
MOST = 5  # foreign texts in one list of a row
_OWN_NAMES = frozenset({*map(str, Quantity), *map(str, Signal), *map(str, CanaryMetric), "degraded"})
_REMOVED = frozenset({"Cc", "Cf", "Cs", "Co"})  # also invisible characters, which people who check would not see
_KEPT = "\n\u200c\u200d"  # joiners, without which some scripts cannot be written

Line = Mapping[str, Any]
Read = Callable[[str, Mapping[str, str | None]], Awaitable[Line]]
"""Returns the reply at a path below `/api/v1`, with a query; an empty one where there is none of this name.

It raises `RagwatchError` if the query is refused, or ragwatch cannot be asked.
"""


class Fence:
    """The marks of one reply; `mark` is the name of both."""

    def __init__(self) -> None:
        self.mark = f"data-{secrets.token_hex(4)}"

    def __call__(self, text: object, limit: int = NAME_CHARS) -> str | None:
        """Return a text between the marks, cut to so many characters; None for None."""
        if text is None:
            return None
        kept = "".join(
            one for one in str(text)[: 4 * limit] if one in _KEPT or unicodedata.category(one) not in _REMOVED
        ).replace(self.mark, "…")
        shown = kept if len(kept) <= limit and len(str(text)) <= 4 * limit else f"{kept[: limit - 1]}…"
        return f"<{self.mark}>{shown}</{self.mark}>"


class RefusedCallError(Exception):
    """A call cannot be answered: what is wrong and what to write instead in our own words, and texts of others."""

    def __init__(self, advice: str, foreign: str = "") -> None:
        super().__init__(advice)
        self.advice, self.foreign = advice, foreign


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool."""

    arguments: Mapping[str, str]  # those that are given, checked for their names and types
    read: Read  # reads the API
    address: str  # address of the pages
    fence: Fence  # the fence of the reply

    def given(self, *names: str) -> dict[str, str | None]:
        """Return these arguments as a query; None for those that are not given."""
        return {name: self.arguments.get(name) for name in names}

    def link(self, page: str, query: Mapping[str, str | None] | None = None) -> str | None:
        """Return the address of a page. One with a query holds names of others, so that it stands in the fence."""
        given = {name: value for name, value in (query or {}).items() if value}
        address = f"{self.address}/{page}"
        return self.fence(f"{address}?{urlencode(given, errors='replace')}", 400) if given else address

    def name(self, text: str | None) -> str | None:
        """Return the name of a quantity: our own ones as they are, those of configured criteria in the fence."""
        return text if text in _OWN_NAMES else self.fence(text)

    async def route(self) -> str | None:
        """Return the route that is asked for; None for all. Raises RefusedCallError: there is none of this name."""
        wanted = self.arguments.get("route")
        if wanted is not None:
            routes = [route["route"] for route in (await self.read("/snapshot", {}))["routes"]]
            if wanted not in routes:
                raise RefusedCallError("route: there is none of this name; write one of these:", ", ".join(routes))
        return wanted

    def _line(self, kind: type, source: Line, *left_out: str) -> dict[str, Any]:
        """The fields of a type, from those of a source; what may be None may be absent."""
        hints = {name: hint for name, hint in _hints(kind).items() if name not in left_out}
        fields = {name: None for name, hint in hints.items() if _may_be_none(hint)} | {**source}
        return {name: self._shown(hint, fields[name]) for name, hint in hints.items()}

    def _shown(self, hint: object, value: Any) -> object:  # noqa: ANN401 - any value of JSON
        """What an assistant sees of a value, as its type says."""
        match get_args(hint)[1:] if get_origin(hint) is Annotated else ():
            case (Fenced(limit=limit),):
                return self.fence(value, limit)
            case (Named(),):
                return self.name(value)
            case (Dated(),):
                return None if value is None else iso(value)
        if isinstance(hint, UnionType) and value is not None:
            hint = get_args(hint)[0]
        if is_typeddict(hint) and value is not None:
            return self._line(hint, value)  # type: ignore[arg-type]
        if get_origin(hint) is Sequence:
            return [self._shown(get_args(hint)[0], one) for one in value]
        return value

    def reply(
        self, kind: type, source: Line, *, most: int | None = None, **lists: Sequence[object]
    ) -> dict[str, object]:
        """Return a reply of a type within its budget: fields and rows of a source, the first list first.

        Raises KeyError: a field is missing; RefusedCallError: there is nothing at the cursor.
        """
        rows = [(name, row) for name, rows in lists.items() for row in rows]
        start = int(self.arguments.get("more", "0"))
        if start and start >= len(rows):
            raise RefusedCallError("more: there is nothing behind this cursor; leave it out to begin again")
        head = self._line(kind, source, "fence", "more", *lists)
        reply: dict[str, Any] = {"fence": self.fence.mark, **_rounded(head), **{name: [] for name in lists}}
        left = BUDGET_CHARS - len(dumps(reply).decode()) - len(',"more":"000000"')
        end = start
        for name, row in rows[start : None if most is None else start + most]:
            (hint,) = get_args(_hints(kind)[name])
            line = _rounded(self._shown(hint, row))
            left -= len(dumps(line).decode()) + 1
            if left < 0 and end > start:
                break
            reply[name].append(line)
            end += 1
        return {**reply, "more": str(end) if end < len(rows) else None}


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _may_be_none(hint: Any) -> bool:  # noqa: ANN401 - any type
    return NoneType in get_args(get_args(hint)[0] if get_origin(hint) is Annotated else hint)


def _rounded(value: Any) -> Any:  # noqa: ANN401 - any value of JSON
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, Mapping):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list | tuple) else value
