"""The month as data: five routes, what breaks on them and when, and what is deployed.

An hour of the month is a few seconds. The shipped rules and the time of a false alarm are divided by the same factor.
"""

import re
from dataclasses import dataclass

from support.oncall_traffic import Breakage

HOUR = 2.0
"""Seconds that an hour of the month lasts; a busy machine needs more."""
DAYS = 30.0
ROUTES = ("clapnq", "mtrag", "expertqa", "halueval", "attribution")
RATE = 8.0
"""Answers of each route an hour, on average over a day."""
LEARNT = 1000
"""Answers of each route that are written before the month begins: baselines are learnt from them."""
AFTER = 24.0
"""Hours after its end in which an alert still belongs to a breakage: its answers are still in the windows."""

PAGE, TICKET, NOBODY = "oncall", "morning", ""
_QUALITY, _TRAFFIC = "RagwatchQuality(Drift|Bad)|RagwatchErrorBudgetBurn", "RagwatchTrafficDrift"


@dataclass(frozen=True, slots=True)
class Change:
    """Something that happens in the month."""

    day: float  # when it begins, in days
    what: str  # what happened, in a few words
    route: str  # the route
    breakage: Breakage | None = None  # what is wrong with a share of the answers; None for a deploy that breaks nothing
    share: float = 1.0  # that share
    hours: float = 0.0  # how long it lasts
    # who must be told: `oncall` is paged, `morning` gets a ticket; empty where no signal shows it
    receiver: str = NOBODY
    alert: str = ""  # pattern of the alerts that may tell of it
    stage: str | None = None  # the stage that the page must name; None where none is at fault
    event: str = ""  # kind of the deploy that ragwatch is told of: `release` or `index`; empty for none


CHANGES = (
    Change(0.5, "release 1.1", "clapnq", event="release"),
    Change(1.0, "release 1.2: the model invents", "clapnq", Breakage.INVENTION, 0.6, 24, PAGE, _QUALITY, "generation"),
    Change(1.5, "a new index of other documents", "mtrag", Breakage.IRRELEVANT, 0.6, 24, PAGE, _QUALITY, "retrieval"),
    Change(5.0, "answers without text", "expertqa", Breakage.NO_TEXT, 0.9, 12, PAGE, _TRAFFIC),
    Change(6.0, "release 2.0", "halueval", event="release"),
    Change(7.0, "a prompt in German", "halueval", Breakage.OTHER_LANGUAGE, 1.0, 12, PAGE, _TRAFFIC, event="release"),
    Change(9.0, "one cached answer to all", "attribution", Breakage.REPEATED, 0.9, 12, PAGE, _TRAFFIC),
    Change(10.0, "the index is rebuilt", "mtrag", event="index"),
    Change(11.0, "a filter refuses a fifth", "clapnq", Breakage.ABSTENTION, 0.2, 120, TICKET, _TRAFFIC),
    Change(13.0, "a few inventions", "mtrag", Breakage.INVENTION, 0.15, 168, PAGE, _QUALITY, "generation"),
    Change(15.0, "every question is refused", "expertqa", Breakage.ABSTENTION, 1.0, 8, PAGE, _TRAFFIC, event="release"),
    Change(16.0, "chunks of 18 characters", "halueval", Breakage.CUT, 0.5, 24, PAGE, _QUALITY, event="index"),
    Change(18.0, "the retriever finds nothing at times", "attribution", Breakage.EMPTY, 0.2, 72, TICKET, _TRAFFIC),
    Change(20.0, "release 2.1", "expertqa", event="release"),
    Change(
        22.0, "documents of another question", "expertqa", Breakage.IRRELEVANT, 0.6, 24, PAGE, _QUALITY, "retrieval"
    ),
    Change(24.0, "documents with old numbers, which answers follow", "clapnq", Breakage.STALE, 0.5, 48),
    Change(28.0, "release 1.3", "clapnq", event="release"),
)
"""Twelve breakages, and deploys that break nothing."""

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LEAST_RANGE, _LEAST_KEPT, _LEAST_STEP = 4.0, 6.0, 1.0
_ONE = r"(\d+)([smhd])"


def compressed(rules: str, hour: float = HOUR) -> str:
    """The text of a rule file in which an hour has so many seconds; names and labels stay as they are.

    Ranges are of four scrapes or more, so that one that is missed by a busy machine ends nothing.

    >>> compressed('sum(increase(a_total[1d])) offset 6h > time() - 3600'), compressed('for: "5m"')
    ('sum(increase(a_total[48000ms])) offset 12000ms > time() - 2', 'for: "167ms"')
    """
    factor = 3600.0 / hour

    def _shorter(number: str, unit: str, least: float) -> str:
        return f"{round(1000 * max(least, float(number) * _UNITS[unit] / factor))}ms"

    text = re.sub(rf"\[{_ONE}\]", lambda m: f"[{_shorter(m[1], m[2], _LEAST_RANGE)}]", rules)
    text = re.sub(
        rf"\[{_ONE}:{_ONE}\]",
        lambda m: f"[{_shorter(m[1], m[2], _LEAST_RANGE)}:{_shorter(m[3], m[4], _LEAST_STEP)}]",
        text,
    )
    text = re.sub(rf"\boffset {_ONE}", lambda m: f"offset {_shorter(m[1], m[2], _LEAST_RANGE)}", text)
    text = re.sub(r"time\(\) - (\d+)", lambda m: f"time() - {float(m[1]) / factor:g}", text)
    for key, least in (("for", 0.0), ("keep_firing_for", _LEAST_KEPT), ("interval", _LEAST_STEP)):
        for number, unit in set(re.findall(rf'\b{key}: "{_ONE}"', text)):
            text = re.sub(rf'\b{key}: "{number}{unit}"', f'{key}: "{_shorter(number, unit, least)}"', text)
    return text
