"""Searching samples: parameters mean something or are refused."""

from __future__ import annotations

import pytest

from ragwatch.core.scores import Quantity
from ragwatch.ports import Query
from ragwatch.web.samples import ParameterError, query_of


def test_every_parameter_narrows_the_search() -> None:
    """Each parameter becomes the field of the same name."""
    given = {
        "route": "search",
        "judge": "embedded",
        "stage": "retrieval",
        "outcome": "judged",
        "quantity": "faithfulness",
        "below": "0.5",
        "limit": "7",
    }
    assert query_of(given.items()) == Query(
        route="search",
        judge="embedded",
        stage="retrieval",
        outcome="judged",
        quantity=Quantity.FAITHFULNESS,
        below=0.5,
        limit=7,
    )


def test_no_parameter_is_everything() -> None:
    """Without parameters the newest fifty are found."""
    assert query_of([]) == Query(limit=50)


@pytest.mark.parametrize(
    ("pairs", "named"),
    [
        ([("colour", "red")], "colour"),
        ([("route", "a"), ("route", "b")], "route"),
        ([("below", "0.5")], "below"),
        ([("quantity", "faithfulness"), ("below", "nan")], "below"),
        ([("quantity", "faithfulness"), ("below", "low")], "below"),
        ([("quantity", "beauty")], "quantity"),
        ([("stage", "elsewhere")], "stage"),
        ([("outcome", "pending")], "outcome"),
        ([("limit", "0")], "limit"),
        ([("limit", "501")], "limit"),
        ([("limit", "-1")], "limit"),
        ([("limit", "1e3")], "limit"),
        ([("limit", "٣")], "limit"),
    ],
)
def test_nonsense_is_refused_by_name(pairs: list[tuple[str, str]], named: str) -> None:
    """A parameter without meaning is an error that names it, not an empty answer."""
    with pytest.raises(ParameterError, match=f"^{named}: "):
        query_of(pairs)
