"""Renders pages as HTML that works without scripts, from the same data that the API serves as JSON.

The overview follows the questions of an on-call engineer: answer quality, stage at fault, examples, sources, judges.
Texts of samples are always autoescaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TypedDict
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined

from ragwatch import __version__
from ragwatch.web.canaries import points
from ragwatch.web.samples import span_of

REFRESH, REFRESH_SECONDS = "refresh", 30
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_KIBI = 1024
_PAGES = Environment(
    loader=PackageLoader("ragwatch.web"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


class Aged(TypedDict):
    """The part of a figure that says how old its newest answer is."""

    age_seconds: float | None


def page(template: str, view: Mapping[str, object]) -> str:
    """Renders a page as HTML. Unpaired surrogates (from a truncated escape in a log) become `?`."""
    return _PAGES.get_template(template).render(view).encode("utf-8", "replace").decode("utf-8")


def overview_page(view: Mapping[str, object]) -> str:
    """Renders the overview as HTML."""
    return page("overview.html", view)


def canaries_page(view: Mapping[str, object]) -> str:
    """Renders the page of canaries as HTML."""
    return page("canaries.html", view)


def refreshing(pairs: Iterable[tuple[str, str]]) -> dict[str, object]:
    """Whether a page loads itself again, which people choose (`refresh=yes`), and the address of the other choice.

    >>> refreshing([("window", "1h")])["refresh"]
    {'on': False, 'seconds': 30, 'other': '?window=1h&refresh=yes'}
    """
    query = list(pairs)
    kept = [pair for pair in query if pair[0] != REFRESH]
    on = (REFRESH, "yes") in query
    other = urlencode(kept if on else [*kept, (REFRESH, "yes")], errors="replace")
    return {"refresh": {"on": on, "seconds": REFRESH_SECONDS, "other": f"?{other}"}}


def done_page(text: str, root: str) -> str:
    """Renders what an action has done as HTML; `root` is the relative path of the overview."""
    return page("done.html", {"version": __version__, "root": root, "lines": text.splitlines()})


def ago(seconds: float | None) -> str:
    """Formats an age.

    >>> ago(4), ago(200), ago(7300), ago(400000), ago(None)
    ('just now', '3 min ago', '2 h ago', '4 d ago', 'never')
    """
    if seconds is None:
        return "never"
    for span, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= span:
            return f"{int(seconds // span)} {unit} ago"
    return "just now"


def duration(seconds: float) -> str:
    """Formats a duration.

    >>> duration(0.04), duration(1.5), duration(200), duration(7300)
    ('0 s', '2 s', '3 min', '2 h')
    """
    for span, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= span:
            return f"{int(seconds // span)} {unit}"
    return f"{seconds:.0f} s"


def size(count: float) -> str:
    """Formats a number of bytes.

    >>> size(17), size(2048), size(5 * 1024**3)
    ('17 B', '2.0 KiB', '5.0 GiB')
    """
    if count < _KIBI:
        return f"{count:.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        count /= _KIBI
        if count < _KIBI:
            return f"{count:.1f} {unit}"
    return f"{count / _KIBI:.1f} TiB"


def clock(at: float) -> str:
    """Formats a Unix time in UTC, to the second.

    >>> clock(0)
    '1970-01-01 00:00:00'
    """
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return "unknown"


def stale(figure: Aged, window: str) -> bool:
    """Whether the newest answer of a figure is older than its window.

    >>> stale({"age_seconds": 1000.0}, "15m"), stale({"age_seconds": 800.0}, "15m"), stale({"age_seconds": None}, "15m")
    (True, False, False)
    """
    age, span = figure["age_seconds"], span_of(window)
    return age is not None and span is not None and age > span


def humanize(name: str) -> str:
    """Replaces underscores by spaces.

    >>> humanize("top_ranked_ignored")
    'top ranked ignored'
    """
    return name.replace("_", " ")


def thousands(count: float) -> str:
    """Formats a count with thousands separators.

    >>> thousands(1234567.0)
    '1,234,567'
    """
    return f"{count:,.0f}"


_FILTERS = (ago, duration, size, clock, stale, humanize, thousands, points)
_PAGES.filters.update({function.__name__: function for function in _FILTERS})
