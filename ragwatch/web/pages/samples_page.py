"""Serves the search for verdicts, newest first, in pages that neither skip nor repeat a verdict."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf, nextafter
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.routing import Route

from ragwatch.model.quantities import Quantity, quantity_of
from ragwatch.model.sample import OTHER
from ragwatch.model.stages import Stage
from ragwatch.ports import Query, Store, StoredVerdict
from ragwatch.statistics.text.search_words import MAX_EXAMINED
from ragwatch.web import samples
from ragwatch.web.audit_trail import shown
from ragwatch.web.pages.pages import Site
from ragwatch.web.pages.pages import clock as instant
from ragwatch.web.pages.sample_page import sample
from ragwatch.web.request_limit import MIB
from ragwatch.web.scope import PageScope

FIELDS = samples.PARAMETERS
LIMITS = ("25", "50", "100", "250", "500")
COLUMNS = tuple(quantity for quantity in Quantity if quantity.row.listed)
LIST_SIZE, SAMPLE_SIZE = 8 * MIB, 16 * MIB  # approximate memory for one response

Pairs = Sequence[tuple[str, str]]


def sample_routes(site: Site) -> list[Route]:
    """Routes `/samples` and `/samples/KEY`."""

    def filters_of(request: Request) -> list[tuple[str, str]]:
        pairs = request.query_params.multi_items()
        return samples.canonical((name, value) for name, value in pairs if value)  # forms submit empty fields as well

    def search(request: Request) -> tuple[dict[str, object], int]:
        filters, scope = filters_of(request), site.scope()
        view = listing(filters, site.store, now=site.clock(), criteria=scope.criteria)
        return {**_frame(filters, scope), "error": None, **view}, 200

    def invalid(request: Request, why: str) -> dict[str, object]:
        return {**_frame(filters_of(request), site.scope()), "error": why}

    def show(request: Request) -> tuple[dict[str, object], int]:
        key, judge, store = request.path_params["key"], request.query_params.get("judge"), site.store
        view = sample(store, key, site.scope(), judge=judge) if samples.KEY.fullmatch(key) else None
        missing = "There is no sample with this key, or retention has deleted it."
        error, status = (missing, 404) if view is None else (None, 200)
        return {"root": "../", "error": error, "sample": view}, status

    def unread(_: Request, why: str) -> dict[str, object]:
        return {"root": "../", "error": why, "sample": None}

    return [
        site.page("/samples", "samples.html", search, LIST_SIZE, invalid=invalid),
        site.page("/samples/{key}", "sample.html", show, SAMPLE_SIZE, invalid=unread),
    ]


def _frame(filters: Pairs, scope: PageScope) -> dict[str, object]:
    """What is around the rows: the form, the filters, and their addresses."""
    return {
        "form": form(filters, scope),
        "chips": chips(filters),
        "download": _without(filters, "limit"),
        "newest": None if "until" not in dict(filters) else _without(filters, "until"),
        "columns": columns(filters, scope.criteria),
    }


def listing(filters: Pairs, store: Store, *, now: float, criteria: Sequence[str] = ()) -> dict[str, object]:
    """Reads a page of verdicts, with the address of the next page.

    Raises:
        ParameterError: A parameter is unknown, repeated, or has no meaning.
        StoreError: The store cannot be read.
    """
    query = samples.query_of(filters, now=now, criteria=criteria)
    verdicts, until, crowded = read_page(store, query)
    examined = samples.examined(store, query).get("examined_since")
    fixed = [  # an age becomes a fixed time
        (name, repr(query.since) if name == "since" and samples.span_of(value.strip()) is not None else value)
        for name, value in filters
        if name != "until"
    ]

    def older(until: float | None) -> str | None:
        return None if until is None else f"?{urlencode([*fixed, ('until', repr(until))])}"

    shown(stored.verdict.key for stored in verdicts)
    return {
        "rows": verdicts,
        "worst": query.worst,
        "older": older(until),
        "crowded": crowded,
        "examined": examined,
        "max_examined": MAX_EXAMINED,
        "unexamined": older(None if examined is None else examined + 1.0),
    }


def read_page(store: Store, query: Query) -> tuple[list[StoredVerdict], float | None, bool]:
    """Reads one page: verdicts, the `until` of the next page (None on the last), and whether some fit on no page.

    A page never splits verdicts with the same timestamp, because `until` cannot. If more verdicts than a page holds
    have the same timestamp, the page holds all of them, up to `MAX_LIMIT`.
    """
    if query.worst:  # one page: the time of its last row is no place to continue from
        return store.summaries(query), None, False
    verdicts = store.summaries(replace(query, limit=query.limit + 1))
    if len(verdicts) <= query.limit:
        return verdicts, None, False
    cut_at = verdicts[-1].verdict.at
    complete = [stored for stored in verdicts if stored.verdict.at != cut_at]
    if complete:
        return complete, complete[-1].verdict.at, False
    crowd = store.summaries(replace(query, limit=samples.MAX_LIMIT + 1, since=cut_at, until=nextafter(cut_at, inf)))
    older = store.summaries(replace(query, limit=1, until=cut_at))
    return crowd[: samples.MAX_LIMIT], cut_at if older else None, len(crowd) > samples.MAX_LIMIT


def columns(filters: Pairs, criteria: Sequence[str] = ()) -> list[dict[str, object]]:
    """Quantities to show, the selected one first.

    >>> [column["quantity"] for column in columns([("quantity", "contradiction")])][:2]
    ['contradiction', 'faithfulness']
    """
    name = dict(filters).get("quantity")
    selected = [quantity_of(name)] if name in {*Quantity, *criteria} else []
    return [
        {
            "quantity": str(quantity),
            "selected": quantity in selected,
            "worst": _worst(filters, str(quantity)),
        }
        for quantity in dict.fromkeys((*selected, *COLUMNS))
    ]


def _worst(filters: Pairs, quantity: str) -> str:
    """Address of the same search, the worst of a quantity first; bounds of another quantity are left out."""
    same = dict(filters).get("quantity") == quantity
    left_out = {"quantity", "sort"} | (set() if same else {"below", "above"})
    kept = [pair for pair in filters if pair[0] not in left_out]
    return f"?{urlencode([*kept, ('quantity', quantity), ('sort', 'worst')], errors='replace')}"


def form(filters: Pairs, scope: PageScope) -> dict[str, object]:
    """Fields of the search form: options and current values."""
    values = dict.fromkeys(FIELDS, "") | {name: value for name, value in filters if name in FIELDS}
    options: dict[str, Iterable[str]] = {
        "route": (*scope.routes, OTHER),
        "judge": scope.judges,
        "stage": map(str, Stage),
        "outcome": samples.OUTCOMES,
        "quantity": (*map(str, Quantity), *scope.criteria),
        "sort": map(str, samples.Order),
        "limit": LIMITS,
        "labelled": samples.FLAGS,
        "disputed": samples.FLAGS,
    }
    values["limit"] = values["limit"] or "50"
    values["sort"] = values["sort"] or str(samples.Order.NEWEST)
    # with the current value, which may be a route that is no longer configured
    choices = {name: list(dict.fromkeys(filter(None, (*known, values[name])))) for name, known in options.items()}
    return {
        "current": values,
        "choices": choices,
        "metadata": [pair for pair in filters if pair[0].startswith(samples.METADATA_PREFIX)],
    }


def chips(filters: Pairs) -> list[dict[str, str]]:
    """Active filters, each with the address of the search without it."""
    return [{"name": name, "value": _shown(name, value), "without": _without(filters, name)} for name, value in filters]


def _shown(name: str, value: str) -> str:
    if name not in ("since", "until"):
        return value
    try:
        return instant(float(value))
    except ValueError:
        return value if samples.span_of(value) is None else f"{value} ago"


def _without(filters: Pairs, name: str) -> str:
    return f"?{urlencode([pair for pair in filters if pair[0] != name])}"
