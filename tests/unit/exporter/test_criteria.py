"""Series of criteria: every series of a quantity under the name of the criterion, none where it is not configured."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from support.snapshots import JUDGE, counted, estimate, small

from ragwatch.board import Board
from ragwatch.core.criteria import Criterion
from ragwatch.core.snapshot import EstimateRow
from ragwatch.exporter import AllowedLabels, Exporter
from ragwatch.exporter.catalogue import CATALOGUE, with_criteria
from ragwatch.exporter.quality import TEMPLATES, series_names
from ragwatch.model.quantities import quantity_of
from ragwatch.telemetry import Telemetry

POLITE = Criterion("polite", "Is the tone polite?")


def lines(*criteria: Criterion) -> list[str]:
    """Lines of a scrape about the criterion."""
    board = Board()
    tallies = counted("search", (1.0, 0.0), POLITE.quantity)
    rows = (EstimateRow(quantity_of("polite"), "search", JUDGE, "1h", estimate(0.5)),)
    board.publish(replace(small(), estimates=rows, tallies=Counter(tallies)))
    exporter = Exporter(
        board, Telemetry(), AllowedLabels(sources=["app"], routes=["search"], judges=[JUDGE], criteria=criteria)
    )
    return [line for line in exporter.text().splitlines() if "polite" in line]


def test_a_criterion_has_all_series_of_a_quantity() -> None:
    """The same names, labels and HELP as every quantity, with its question."""
    seen = lines(POLITE)
    assert 'ragwatch_polite_ratio{corrected="no",judge="embedded",route="search",window="1h"} 0.5' in seen
    assert 'ragwatch_polite_weighted_score_total{judge="embedded",route="search"} 2.0' in seen
    assert 'ragwatch_polite_weighted_score_total{judge="embedded",route="other"} 0.0' in seen
    assert 'ragwatch_polite_score_count{judge="embedded",route="search"} 2.0' in seen
    (told,) = [line for line in seen if line.startswith("# HELP ragwatch_polite_ratio ")]
    assert "mean polite (share of answers with yes to: Is the tone polite?)" in told
    assert len(with_criteria((POLITE,))) == len(CATALOGUE) + len(TEMPLATES)
    assert set(series_names("polite")) == {row.name for row in with_criteria((POLITE,))} - {
        row.name for row in CATALOGUE
    }


def test_one_that_is_not_configured_is_not_exported() -> None:
    """Stored figures of a criterion that was removed are left out, without an error."""
    assert lines() == []
