"""What pages and JSON say of the annotators behind a corrected estimate."""

from __future__ import annotations

from dataclasses import replace

from support.snapshots import small

from ragwatch.core.estimators.corrected import AnnotatorShares, WithoutAnnotator
from ragwatch.core.snapshot import EstimateRow
from ragwatch.web.overview import overview
from ragwatch.web.route_page import END_TO_END, route_levels
from ragwatch.web.scope import PageScope


def a_corrected_row(stands_on: str | None = None) -> EstimateRow:
    """An estimate that two people have labelled for."""
    row = small().estimates[0]
    without = (
        WithoutAnnotator("ann", 40, replace(row.estimate, value=0.4, low=0.3, high=0.5)),
        WithoutAnnotator("bob", 20, None),
    )
    return replace(
        row, corrected=True, labels=60, labels_given=60, annotators=AnnotatorShares(2, without, stands_on, 0.2)
    )


def figures(corrected: tuple[EstimateRow, ...]) -> list[object]:
    """What the JSON says of corrections, of each figure that has an estimate."""
    snapshot = replace(small(), corrected=corrected)
    view = overview(
        snapshot, PageScope(routes=(snapshot.estimates[0].route,)), now=snapshot.at, window=snapshot.estimates[0].window
    )
    shown = [figure for route in view["routes"] for judge in route["judges"] for figure in judge["figures"]]
    return [figure["corrected"] for figure in shown if figure.get("corrected") is not None]


def test_the_json_names_them_with_their_share() -> None:
    """Number, the estimate without each, the greatest change; nothing where nothing is corrected."""
    assert figures(()) == []
    row = a_corrected_row()
    (shown,) = figures((row,))
    assert isinstance(shown, dict)
    assert (shown["value"], shown["annotators"], shown["greatest_change"]) == (row.estimate.value, 2, 0.2)
    assert shown["without"][0] == {"annotator": "ann", "labels": 40, "value": 0.4, "low": 0.3, "high": 0.5}
    assert shown["without"][1]["value"] is None
    (plain,) = figures((replace(row, annotators=None),))
    assert isinstance(plain, dict)
    assert "annotators" not in plain


def test_the_page_of_a_route_has_a_row_without_each() -> None:
    """And says where a figure stands on one person."""
    for row, sources in (
        (a_corrected_row(), ["labels of 2 people and judge", "the same without the 40 labels of ann"]),
        (
            a_corrected_row("ann"),
            ["labels of 2 people and judge; stands on ann alone", "the same without the 40 labels of ann"],
        ),
        (replace(a_corrected_row(), annotators=None), ["labels of people and judge"]),
    ):
        scope = PageScope(routes=(row.route,))
        levels = route_levels(replace(small(), corrected=(row,)), scope, row.route, now=small().at, window=row.window)[
            "levels"
        ]
        rows = [shown for level in levels if level["level"] == END_TO_END for shown in level["rows"]]
        assert [shown["source"] for shown in rows] == sources
        assert [shown["value"] for shown in rows[1:]] == [0.4] * (len(rows) - 1)
