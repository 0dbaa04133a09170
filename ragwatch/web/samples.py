"""Parses the search parameters of a request, and formats stored verdicts for lists."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from math import isfinite
from typing import Any, cast
from urllib.parse import urlencode

from ragwatch.model.quantities import LOW_IS_GOOD, Quantity, quantity_of
from ragwatch.model.stages import FAULTS, Stage
from ragwatch.ports import PackedVerdict, Query, Store, StoredVerdict
from ragwatch.statistics.text.search_words import MAX_ASKED, phrases_of
from ragwatch.web.audit_trail import shown
from ragwatch.web.json_values import TEXT, ParameterError, Schema, chosen, one_of
from ragwatch.web.pages.figure_replies import FailingAnswer

KEY = re.compile(r"[0-9a-f]{32}")
MAX_LIMIT, DEFAULT_LIMIT = 500, 50
MAX_FAILING = 10
OUTCOMES = ("judged", "unjudged")
FLAGS = ("yes", "no")
QUESTION_CHARS = 140
EXCERPT_CHARS = 300
_EXCERPTS = ("id", "question", "answer")
METADATA_PREFIX = "metadata."  # of parameters: metadata.release=v2 is the same as metadata=release=v2
SPAN = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhdw])")
AGE: Schema = {"type": "string", "pattern": f"^{SPAN.pattern}$", "description": "a duration such as 15m or 7d"}
TIME: Schema = {
    "anyOf": [AGE, {"type": "number"}, {"type": "string", "format": "date-time"}],
    "description": "an age such as 15m, 2h or 3d; seconds since the epoch; or ISO 8601, UTC by default",
}
CURSOR: Schema = {
    "type": "string",
    "description": "place to continue from; it is part of `next`, the address of the following page",
}
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


class Order(StrEnum):
    """Order of a list of verdicts."""

    NEWEST = "newest"
    WORST = "worst"


def schemas(criteria: Sequence[str] = ()) -> dict[str, Schema]:
    """Schemas of the parameters of a search."""
    number: Schema = {"type": "number"}
    return {
        "route": TEXT,
        "stage": one_of(Stage),
        "judge": TEXT,
        "outcome": one_of(OUTCOMES),
        "quantity": one_of((*Quantity, *criteria)),
        "below": {**number, "description": "scores below; needs `quantity`"},
        "above": {**number, "description": "scores above; needs `quantity`"},
        "since": TIME,
        "until": TIME,
        "sort": one_of(Order),
        "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT},
        "labelled": {**one_of(FLAGS), "description": "whether a person has labelled the sample"},
        "disputed": {**one_of(FLAGS), "description": "whether another judge names another stage"},
        "context": {**TEXT, "description": "id of a context that was retrieved"},
        "top_context": {**TEXT, "description": "id of the context that was ranked first"},
        "metadata": {
            "type": "string",
            "pattern": "^[^=]*[^=\\s][^=]*=.*",
            "description": "KEY=VALUE, such as release=v2; for several keys write metadata.KEY=VALUE for each",
        },
        "text": {
            **TEXT,
            "description": 'words that question or answer contain; quotes make a phrase, such as "gift card"',
        },
        "texts": {"type": "boolean", "default": False},
        "after": CURSOR,
    }


JSON_PARAMETERS = tuple(schemas())
PARAMETERS = JSON_PARAMETERS[:-2]  # without `texts` and `after`
_AS_READ = frozenset(
    {"route", "judge", "stage", "outcome", "below", "above", "since", "until", "context", "top_context", "limit"}
)
"""Parameters that are fields of a `Query` as they are."""


def query_of(parameters: Iterable[tuple[str, str]], *, now: float, criteria: Sequence[str] = ()) -> Query:
    """Parses the search of a request. Scores are strictly below and above; times are from `since`, before `until`.

    Raises ParameterError: A parameter is unknown, repeated or invalid.
    """
    values: dict[str, str] = {}
    known = schemas(criteria)
    for name, value in canonical(parameters):
        if name not in PARAMETERS and not name.startswith(METADATA_PREFIX):
            raise ParameterError(f"{name}: not a parameter; there are {', '.join(PARAMETERS)}")
        if name in values:
            raise ParameterError(f"{name}: given twice")
        values[name] = value
    for name in ("below", "above"):
        if name in values and "quantity" not in values:
            raise ParameterError(f"{name}: needs a quantity")
    if values.get("sort") == Order.WORST and "quantity" not in values:
        raise ParameterError("sort: worst needs a quantity")
    read = {name: _read(name, text, known[name], now) for name, text in values.items() if name in known}
    fields: dict[str, Any] = {name: value for name, value in read.items() if name in _AS_READ}
    fields |= {name: read[name] == FLAGS[0] for name in ("labelled", "disputed") if name in read}
    if "quantity" in read:
        fields["quantity"] = quantity_of(values["quantity"])
    worst = read.get("sort") == Order.WORST
    return Query(**fields, metadata=_metadata(values), words=_words(values), worst=worst)


def _read(name: str, text: str, schema: Schema, now: float) -> object:
    """Reads a parameter as its published schema says. Raises ParameterError: it is invalid."""
    value: object = text
    if schema is TIME:
        value = moment({name: text}, name, now)
    elif "enum" in schema:
        value = chosen(name, text, cast("list[str]", schema["enum"]))
    elif schema.get("type") == "number":
        value = _finite(text)
        if value is None:
            raise ParameterError(f"{name}: not a number")
    elif schema.get("type") == "integer":
        if not re.fullmatch(r"[0-9]{1,4}", text) or not 1 <= int(text) <= MAX_LIMIT:
            raise ParameterError(f"{name}: not a whole number from 1 to {MAX_LIMIT}")
        value = int(text)
    return value


def canonical(parameters: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Writes metadata as parameters of their own: the form has one field for key and value.

    >>> canonical([("metadata", "release=v2"), ("route", "search")])
    [('metadata.release', 'v2'), ('route', 'search')]
    """
    pairs = []
    for name, text in parameters:
        key, separator, value = text.partition("=")
        written = name == "metadata" and separator
        pairs.append((f"{METADATA_PREFIX}{key.strip()}", value.strip()) if written else (name, text))
    return pairs


def _metadata(values: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    if "metadata" in values or METADATA_PREFIX in values:
        raise ParameterError("metadata: not a key and a value; write metadata=release=v2 or metadata.release=v2")
    start = len(METADATA_PREFIX)
    return tuple((name[start:], value) for name, value in values.items() if name.startswith(METADATA_PREFIX))


def _words(values: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
    if "text" not in values:
        return ()
    phrases = phrases_of(values["text"])
    if not 1 <= len(phrases) <= MAX_ASKED:
        raise ParameterError(f'text: not 1 to {MAX_ASKED} words; quotes make a phrase of several: "gift card"')
    return phrases


def _finite(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None


def moment(values: Mapping[str, str], name: str, now: float) -> float | None:
    """Parses a time: an age, seconds since the epoch, or ISO 8601 (UTC by default)."""
    if name not in values:
        return None
    text = values[name].strip()
    age, value = span_of(text), _finite(text)
    if age is not None or value is not None:
        return value if age is None else now - age
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError) as error:
        raise ParameterError(f"{name}: not a time; write 2h or 3d (ago), or 2026-01-31T12:00") from error


def span_of(text: str) -> float | None:
    """Parses a duration in seconds; None if the text is not one.

    >>> span_of("15m"), span_of("1.5h"), span_of("soon")
    (900.0, 5400.0, None)
    """
    match = SPAN.fullmatch(text)
    return None if match is None else float(match[1]) * _SECONDS[match[2]]


def line(stored: StoredVerdict) -> dict[str, object]:
    """Formats a stored verdict for JSON lists: `sample` is an excerpt; `error` is set if it cannot be read."""
    shown([stored.verdict.key])
    row: dict[str, object] = {"verdict": stored.line, "sample": stored.sample}
    return row if stored.damage is None else row | {"error": stored.damage}


def shortened(text: str, limit: int) -> str:
    """Truncates a text to so many characters.

    >>> shortened("abcdef", 4), shortened("abc", 4)
    ('abc…', 'abc')
    """
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def short(sample: Mapping[str, object]) -> dict[str, object]:
    """Truncates id, question and answer of a sample; omits missing ones."""
    texts = {name: sample[name] for name in _EXCERPTS if name in sample}
    return {name: shortened(text, EXCERPT_CHARS) if isinstance(text, str) else text for name, text in texts.items()}


def json_query_of(
    parameters: Iterable[tuple[str, str]], *, now: float, criteria: Sequence[str] = ()
) -> tuple[Query, bool]:
    """Parses the search of a JSON request, and whether it requests full texts (`texts=true`).

    `after` is the cursor in the `next` address of the previous page; the worst scores are one page, without texts.
    Raises ParameterError: A parameter is unknown, repeated or invalid.
    """
    pairs = list(parameters)
    more = {name: value for name, value in pairs if name in ("texts", "after")}
    query = query_of((pair for pair in pairs if pair[0] not in more), now=now, criteria=criteria)
    if query.worst and more:
        raise ParameterError(f"sort: worst has no {min(more)}; leave it out, or leave sort out")
    if len(more) < sum(name in more for name, _ in pairs):
        raise ParameterError(f"{min(more)}: given twice")
    if more.get("texts", "false") not in ("true", "false"):
        raise ParameterError("texts: not true or false")
    at, _, seq = more.get("after", "").partition(",")
    value = _finite(at)
    if "after" in more and (value is None or not re.fullmatch(r"[0-9]{1,18}", seq)):
        raise ParameterError("after: not a cursor; use the whole address from `next`")
    return replace(query, after=None if value is None else (value, int(seq))), more.get("texts") == "true"


def examined(store: Store, query: Query) -> dict[str, float]:
    """Reads `examined_since`: back to when answers were looked at; nothing if all were.

    Raises StoreError: the store cannot be read.
    """
    since = store.examined_since(query) if query.words else None
    return {} if since is None else {"examined_since": since}


def next_address(pairs: Iterable[tuple[str, str]], query: Query) -> Callable[[PackedVerdict, int], str]:
    """Returns a function from the last row of a page and its number of rows to the address of the next page."""
    kept = [(name, value) for name, value in pairs if name not in ("after", "limit", "since", "until")]
    kept += [(name, repr(at)) for name, at in (("since", query.since), ("until", query.until)) if at is not None]

    def address(last: PackedVerdict, sent: int) -> str:
        cursor = f"{last.verdict.at!r},{last.seq}"
        return f"/api/v1/samples?{urlencode([*kept, ('limit', query.limit - sent), ('after', cursor)])}"

    return address


def failing(store: Store) -> list[FailingAnswer]:
    """Reads the newest answers with a stage at fault, newest first, for the overview.

    Raises StoreError: the store cannot be read.
    """
    verdicts = [stored for stage in FAULTS for stored in store.summaries(Query(stage=stage, limit=MAX_FAILING))]
    newest = sorted(verdicts, key=lambda stored: stored.verdict.at, reverse=True)[:MAX_FAILING]
    shown(stored.verdict.key for stored in newest)
    return [_failing_row(stored) for stored in newest]


def _failing_row(stored: StoredVerdict) -> FailingAnswer:
    verdict, sample = stored.verdict, stored.sample or {}
    question, answer = (
        shortened(text, QUESTION_CHARS) if isinstance(text := sample.get(name), str) else None for name in _EXCERPTS[1:]
    )
    scores = {quantity: score for quantity, score in verdict.scores.items() if score is not None}
    of_stage = [quantity for quantity in scores if quantity.row.stage == verdict.stage]
    worst = min(of_stage, key=lambda one: 1.0 - scores[one] if one in LOW_IS_GOOD else scores[one], default=None)
    row: FailingAnswer = {
        "key": verdict.key,
        "at": verdict.at,
        "route": verdict.route,
        "judge": verdict.judge,
        "stage": verdict.stage,
        "quantity": None if worst is None else str(worst),
        "score": None if worst is None else scores[worst],
        "question": question,
        "answer": answer,
    }
    return row if stored.damage is None else {**row, "error": stored.damage}
