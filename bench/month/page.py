"""docs/month.md and its charts, from the record of a month."""

import re
from collections.abc import Mapping, Sequence
from statistics import fmean

from month.chart import Bar, Chart, Lane, draw
from month.record import Happened, Notice, Record
from month.story import AFTER, CHANGES, LEARNT, NOBODY, PAGE, RATE, Change

NAMES = {PAGE: "page", "morning": "ticket", NOBODY: "nobody"}
SOURCES = {
    "clapnq": "CLAPNQ: answers that people wrote, each with its passage",
    "mtrag": "mtRAG: turns of conversations",
    "expertqa": "ExpertQA: cited answers, 28 % of whose claims experts do not find supported",
    "halueval": "HaluEval: half of the answers were written to be wrong",
    "attribution": "AttributionBench: half of the claims are not supported by what they cite",
}
_HEAD = """# A month with ragwatch

`make month ARGS="--seed {seed}"` wrote this page. It has figures only, of real answers from public labelled sets.
{days:g} days, {routes} routes, {broken} breakages, {deploys} deploys that break nothing, {answers:,} answers. What ran,
on {made}: a real daemon (ragwatch {version}, embedded judge `lexical`, every answer judged), Prometheus {prometheus}
and Alertmanager with the rules of [deploy/prometheus](../deploy/prometheus). At most {slowest:.0f} answers waited
for the judge; {missed:.1%} of the scrapes failed.

**{summary}**
"""
_COLUMNS = """`must be` is how a breakage must be notified of, and `was` how it was. `after` is the time from the first
answer that may be broken to the notification, in hours and in answers of the route; `ended` is the end of the alert, in
hours after the mend.
"""
_METHOD = """## How it is made

- An hour is {hour:g} seconds. Every duration of the shipped rules, and `false_alarm_every` of the configuration, is
  divided by {factor:g}. Prometheus scrapes every second, so no range is shorter than four seconds, and an alert goes on
  for six seconds instead of 5 minutes after its condition ended. Nothing else of the rules differs.
- Each route gives about {rate:g} answers an hour, by day nine times as many as by night. Its baselines were learned
  from {learnt:,} answers before the first day. By default a baseline takes 2,000 scores, or 5,000 requests for signals
  of traffic.
- Blue and green lines are the recorded means of six hours. The dashed line, and its grey interval, is the level of two
  minutes of the daemon, which sums up by the minute: {level:.0f} hours. Alerts on levels see one minute, not an hour.
  Nobody has labelled an answer, so the level rests on what is known of the judge's error elsewhere.
- Silence of a route is learned by the minute and cannot be played at this speed; `make slow` plays it.
- An alert belongs to a breakage if it came while this lasted, or within {after:g} hours after it; any other is false.
- `stage` is what the text of a page named. Prometheus renders it with the first bad answers, when few are known, and
  sends a later text a minute after, which is 35 hours here: pages that end sooner show the first text only. `/drift`
  names it.
- The answers depend on the seed only. When somebody is notified also depends on the machine: by an hour or two. An
  alert may end days after the mend, where the answers since then are a little worse than the baseline by chance.
"""


def files(record: Record) -> Mapping[str, str]:
    """The page and its charts, by name."""
    charts = {f"month_{route}.svg": draw(_chart(record, route)) for route in record.courses}
    return {"month.md": text(record), **charts}


def text(record: Record) -> str:
    """The page."""
    broken = [one for one in record.happened if CHANGES[one.number].breakage is not None]
    false = false_notices(record)
    parts = [
        _HEAD.format(
            seed=record.seed,
            days=round(record.days, 1),
            routes=len(record.courses),
            broken=len(broken),
            deploys=sum(CHANGES[one.number].breakage is None for one in record.happened),
            version=record.version,
            prometheus=record.prometheus,
            made=record.made,
            answers=sum(record.answers.values()),
            slowest=record.slowest,
            missed=record.missed,
            summary=_summary(record, broken, false),
        ),
        "## What was broken, and who was notified\n",
        _table(
            ("day", "route", "what", "share", "hours", "must be", "was", "alert", "after", "stage", "ended"),
            [_row(record, one) for one in broken],
        ),
        _COLUMNS,
        "## False alarms and other notifications\n",
        _false_table(false),
        *(_route(record, route) for route in record.courses),
        _METHOD.format(
            hour=record.hour,
            factor=3600.0 / record.hour,
            rate=RATE,
            learnt=LEARNT,
            level=120.0 / record.hour,
            after=AFTER,
        ),
    ]
    return "\n".join(parts)


def _summary(record: Record, broken: Sequence[Happened], false: Sequence[Notice]) -> str:
    due = [one for one in broken if CHANGES[one.number].receiver]
    told = sum(_first(record, one) is not None for one in due)
    pages = sum(notice.receiver == PAGE for notice in false)
    unseen = len(broken) - len(due)
    return (
        f"{told} of {len(due)} breakages that must be notified of were notified of; "
        f"{pages} false pages, {len(false) - pages} false tickets. "
        f"{unseen} more cannot be seen from answers and contexts."
    )


def belongs(notice: Notice, one: Happened) -> bool:
    """Whether an alert is about a breakage: of its route, while it lasted or within a day."""
    change = CHANGES[one.number]
    if change.breakage is None or change.route != notice.route:
        return False
    return one.begin <= notice.heard <= one.end + AFTER / 24.0


def false_notices(record: Record) -> list[Notice]:
    """Notifications that are about no breakage."""
    return [notice for notice in record.notices if not any(belongs(notice, one) for one in record.happened)]


def _first(record: Record, one: Happened) -> Notice | None:
    """The first notification that tells of a breakage as it must."""
    change = CHANGES[one.number]
    for notice in record.notices:
        fits = notice.receiver == change.receiver and re.fullmatch(change.alert, notice.alert)
        if fits and belongs(notice, one):
            return notice
    return None


def _row(record: Record, one: Happened) -> Sequence[str]:
    change = CHANGES[one.number]
    told = _first(record, one)
    own = [notice for notice in record.notices if belongs(notice, one)]
    others = [notice for notice in own if notice is not told]
    begin = (f"{one.begin:g}", change.route, change.what, f"{change.share:.0%}", f"{change.hours:g}")
    if told is None:
        if record.days < one.end:
            verdict = "not yet: the run ended"
        else:
            verdict = "**missed**" if change.receiver else "nobody, as expected"
        instead = "; ".join(f"{NAMES[n.receiver]} {_name(n)}" for n in own) or "-"
        return (*begin, NAMES[change.receiver], verdict, instead, "-", "-", "-")
    hours = (told.heard - one.begin) * 24.0
    answers = sum(at <= told.heard for at in one.answered)
    named = "-"
    if change.stage or told.stage:
        wrong = change.stage is not None and told.stage != change.stage
        named = f"**{told.stage or 'none'}**, not {change.stage}" if wrong else told.stage
    ended = "still fires" if told.ended is None else f"{(told.ended - one.end) * 24.0:+.0f} h"
    more = f" and {len(others)} more" if others else ""
    return (
        *begin,
        NAMES[change.receiver],
        f"{NAMES[told.receiver]}{more}",
        _name(told),
        f"{hours:.1f} h, {answers}",
        named,
        ended,
    )


def _name(notice: Notice) -> str:
    return f"{notice.alert.removeprefix('Ragwatch')}{f' ({notice.what})' if notice.what else ''}"


def _false_table(false: Sequence[Notice]) -> str:
    if not false:
        return "None: every notification is about a breakage above.\n"
    rows = [(f"{n.heard:.1f}", n.route or "-", NAMES[n.receiver], _name(n), _plain(n.summary)) for n in false]
    return _table(("day", "route", "as", "alert", "text"), rows)


def _plain(summary: str) -> str:
    """A summary without the clock of the run."""
    return re.sub(r" since (\w+ \d+ )?\d\d:\d\d UTC", "", summary).replace("|", "\\|")


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [names, ["---"] * len(names), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _route(record: Record, route: str) -> str:
    said = [
        f"- day {notice.heard:.1f}, {NAMES[notice.receiver]}: {_plain(notice.summary)}"
        for notice in record.notices
        if notice.route == route
    ]
    heard = "\n".join(said) if said else "Nobody was notified."
    return (
        f"## {route}\n\n{SOURCES[route]}; {record.answers[route]:,} answers.\n\n"
        f"![Level, alarms, tickets and pages of {route}](month_{route}.svg)\n\n{heard}\n"
    )


def _chart(record: Record, route: str) -> Chart:
    course = record.courses[route]
    own = [(one, CHANGES[one.number]) for one in record.happened if CHANGES[one.number].route == route]
    broken = [(one, change) for one, change in own if change.breakage is not None]
    read = [point[1] for point in course.faithfulness]
    title = f"{route}: faithfulness {fmean(read):.2f} on average as judged" if read else route
    return Chart(
        title,
        record.days,
        course,
        [(one.begin, min(one.end, record.days)) for one, _ in broken],
        [one.begin for one, change in own if change.event],
        _lanes(record, route, broken),
    )


def _lanes(record: Record, route: str, broken: Sequence[tuple[Happened, Change]]) -> list[Lane]:
    false = false_notices(record)
    lanes: list[Lane] = [
        ("broken", [Bar(one.begin, min(one.end, record.days), "bar", _short(change)) for one, change in broken])
    ]
    for name, spans in record.courses[route].alarms.items():
        lanes.append(
            (name.replace("_", " "), [Bar(begin, end, "alarm", f"{change:+.2f}") for begin, end, change in spans])
        )
    for receiver, name, kind in (("morning", "tickets", "ticket"), (PAGE, "pages", "page")):
        notices = [notice for notice in record.notices if (notice.route, notice.receiver) == (route, receiver)]
        lanes.append((name, [_told(record, notice, "false" if notice in false else kind) for notice in notices]))
    return lanes


def _short(change: Change) -> str:
    return f"{change.what.partition(': ')[2] or change.what}, {change.share:.0%}"


def _told(record: Record, notice: Notice, kind: str) -> Bar:
    end = record.days if notice.ended is None else notice.ended
    stage = f": {notice.stage}" if notice.stage else ""
    return Bar(notice.heard, end, kind, f"{_name(notice)}{stage}{', false' if kind == 'false' else ''}")
