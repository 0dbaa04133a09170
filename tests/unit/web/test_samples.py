"""Search parameters are parsed or refused."""

from dataclasses import replace
from urllib.parse import parse_qsl

import pytest
from support.kit import a_record
from support.snapshots import AT

from ragwatch.model.quantities import Quantity
from ragwatch.ports import PackedVerdict, Query
from ragwatch.stores.texts import PackedText
from ragwatch.web.json_values import ParameterError
from ragwatch.web.samples import json_query_of, next_address, query_of


def test_every_parameter_narrows_the_search() -> None:
    """Each parameter becomes the field of the same name."""
    given = {
        "route": "search",
        "judge": "embedded",
        "stage": "retrieval",
        "outcome": "judged",
        "quantity": "faithfulness",
        "below": "0.5",
        "above": "0.25",
        "since": "2h",
        "until": "30m",
        "limit": "7",
        "context": "doc-42",
        "text": 'Refund "gift card"',
        "top_context": "doc-7",
        "metadata.release": "v2",
        "metadata": " user.tier = a=b ",
    }
    assert query_of(given.items(), now=AT) == Query(
        route="search",
        judge="embedded",
        stage="retrieval",
        outcome="judged",
        quantity=Quantity.FAITHFULNESS,
        below=0.5,
        above=0.25,
        since=AT - 7200,
        until=AT - 1800,
        limit=7,
        context="doc-42",
        words=(("refund",), ("gift", "card")),
        top_context="doc-7",
        metadata=(("release", "v2"), ("user.tier", "a=b")),
    )


def test_no_parameter_is_everything() -> None:
    """Without parameters the newest fifty are found."""
    assert query_of([], now=AT) == Query(limit=50)


@pytest.mark.parametrize(
    ("pairs", "named"),
    [
        ([("colour", "red")], "colour"),
        ([("route", "a"), ("route", "b")], "route"),
        ([("below", "0.5")], "below"),
        ([("above", "0.5")], "above"),
        ([("quantity", "faithfulness"), ("below", "nan")], "below"),
        ([("quantity", "faithfulness"), ("above", "")], "above"),
        ([("since", "yesterday")], "since"),
        ([("since", "-1h")], "since"),
        ([("since", "9999999999h")], "since"),
        ([("until", "nan")], "until"),
        ([("until", "")], "until"),
        ([("quantity", "faithfulness"), ("below", "low")], "below"),
        ([("quantity", "beauty")], "quantity"),
        ([("stage", "elsewhere")], "stage"),
        ([("outcome", "pending")], "outcome"),
        ([("limit", "0")], "limit"),
        ([("limit", "501")], "limit"),
        ([("limit", "-1")], "limit"),
        ([("limit", "1e3")], "limit"),
        ([("limit", "٣")], "limit"),
        ([("text", '"-"')], "text"),
        ([("text", " ".join(map(str, range(17))))], "text"),
        ([("metadata", "release")], "metadata"),
        ([("metadata", "=v2")], "metadata"),
        ([("metadata.", "v2")], "metadata"),
        ([("metadata", "release=v1"), ("metadata.release", "v2")], r"metadata\.release"),
        ([("context", "a"), ("context", "b")], "context"),
        ([("texts", "yes")], "texts"),
        ([("texts", "true"), ("texts", "true")], "texts"),
        ([("texts", "true"), ("sort", "worst"), ("quantity", "faithfulness")], "sort"),
        ([("after", "1,2"), ("sort", "worst"), ("quantity", "faithfulness")], "sort"),
        ([("after", "1,x")], "after"),
        ([("after", "x,1")], "after"),
        ([("after", "1")], "after"),
        ([("after", "nan,1")], "after"),
    ],
)
def test_nonsense_is_refused_by_name(pairs: list[tuple[str, str]], named: str) -> None:
    """A parameter without meaning is an error that names it, not an empty answer."""
    with pytest.raises(ParameterError, match=f"^{named}: "):
        json_query_of(pairs, now=AT)
    if named not in ("texts", "after") and "texts" not in dict(pairs) and "after" not in dict(pairs):
        with pytest.raises(ParameterError, match=f"^{named}: "):
            query_of(pairs, now=AT)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("90s", AT - 90),
        ("1.5h", AT - 5400),
        ("2w", AT - 1_209_600),
        ("1699999999.25", 1_699_999_999.25),
        ("2023-11-14T22:13:20", AT),
        ("2023-11-14T23:13:20+01:00", AT),
        ("2023-11-14", AT - 80_000),
    ],
)
def test_times_are_ago_or_on_a_clock(text: str, at: float) -> None:
    """A time is so long ago, seconds since the epoch, or ISO 8601 in UTC."""
    assert query_of([("since", text), ("until", text)], now=AT) == Query(since=at, until=at)


def test_json_takes_places_and_texts() -> None:
    """`texts=true` wants whole texts, `after` goes on behind a page; the rest is the same search."""
    assert json_query_of([], now=AT) == (Query(), False)
    query = json_query_of([("texts", "true"), ("after", "1700000000.5,7"), ("route", "search")], now=AT)
    assert query == (Query(route="search", after=(AT + 0.5, 7)), True)
    assert json_query_of([("texts", "false")], now=AT)[1] is False
    assert json_query_of([("sort", "worst"), ("quantity", "faithfulness")], now=AT)[0].worst


def test_the_next_page_is_of_the_same_search() -> None:
    """Its address keeps the search, with `since` at the same instant, and asks for as many as are still wanted."""
    pairs = [("route", "a&b"), ("since", "1h"), ("limit", "9"), ("texts", "true")]
    query, _ = json_query_of(pairs, now=AT)
    last = PackedVerdict(7, a_record(at=AT - 5.0), {}, {}, PackedText(b""), None)
    path, _, following_query = next_address(pairs, query)(last, 4).partition("?")
    assert path == "/api/v1/samples"
    expected = replace(query, limit=5, after=(AT - 5.0, 7))
    assert json_query_of(parse_qsl(following_query), now=AT + 99) == (expected, True)
