"""A scrape: negotiated format, from memory, valid for the parsers; series of criteria and of segments."""

import math
from collections import Counter
from dataclasses import replace

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from support.snapshots import AT, JUDGE, KEY, an_exporter, counted, estimate, small

from ragwatch.board import Board
from ragwatch.exporter import AllowedLabels
from ragwatch.exporter.catalogue import CATALOGUE, TEMPLATES, series_names, with_criteria
from ragwatch.exporter.families import of_snapshot
from ragwatch.exporter.render import negotiated
from ragwatch.model.quantities import Criterion, Quantity, quantity_of
from ragwatch.statistics.segments import Segments, series_of_segments
from ragwatch.statistics.snapshot import EstimateRow, SegmentRow, Snapshot
from ragwatch.statistics.tally import Tally, observe

OPENMETRICS = "application/openmetrics-text"
TEXT = "text/plain; version=0.0.4"
POLITE = Criterion("polite", "Is the tone polite?")
SEGMENTS = Segments({"release": ("v1",), "tier": ("free", "paid")})
WINDOWS = ("15m", "1h")
SEGMENT_ROUTES = ("search", "other")
ALLOWED = AllowedLabels(sources=["app"], routes=["search"], judges=["embedded"], segments=SEGMENTS)


def test_both_formats_are_whole_and_valid() -> None:
    """Text has no exemplars; OpenMetrics has, ends with EOF, and no child costs a second series for its creation."""
    (text, plain), (more, openmetrics) = (an_exporter(small()).render(accept) for accept in ("", OPENMETRICS))
    assert plain == "text/plain; version=0.0.4; charset=utf-8"
    assert b" # {" not in text
    names = {family.name for family in parse_text(text.decode())}
    assert {"ragwatch_faithfulness_ratio", "ragwatch_samples_drawn", "ragwatch_build_info"} <= names
    assert openmetrics == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert f'# {{sample_id="{KEY}",trace_id="4bf92f3577b34da6"}} 0.05 {AT - 90.0}' in more.decode()
    assert (more.endswith(b"# EOF\n"), b"_created" in more) == (True, False)
    assert "ragwatch_faithfulness_score" in {family.name for family in parse_openmetrics(more.decode())}


@pytest.mark.parametrize(
    ("histogram", "name", "values"),
    [
        (Tally.TOP_SCORE, "ragwatch_traffic_top_context_score", (-0.9, 0.4, -0.2)),
        (Tally.TOP_SCORE, "ragwatch_traffic_top_context_score", (0.9, 0.4, -0.2)),
        (Tally.CONTEXTS, "ragwatch_traffic_contexts", (1, math.inf)),
    ],
)
def test_openmetrics_is_valid_whatever_was_observed(histogram: Tally, name: str, values: tuple[float, ...]) -> None:
    """A parser refuses the whole scrape for one negative `_sum`, and for a `_count` without `_sum`."""
    tallies = Counter(small().tallies)
    for value in values:
        observe(tallies, histogram, ("search",), value)
    body, _ = an_exporter(replace(small(), tallies=tallies)).render(OPENMETRICS)
    families = {family.name: family for family in parse_openmetrics(body.decode())}
    assert {sample.name for sample in families[name].samples} == {f"{name}_bucket"}


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", TEXT),
        ("*/*", TEXT),
        ("text/html,application/xhtml+xml,*/*;q=0.8", TEXT),
        ("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", OPENMETRICS),
        ("text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5", TEXT),
        ("application/openmetrics-text;q=0", TEXT),
        ("application/openmetrics-text;q=banana", TEXT),
        ("application/openmetrics-text;version=banana;escaping=allow-utf-8", OPENMETRICS),
        ("Application/OpenMetrics-Text ; version=9.9", OPENMETRICS),
        ("text/plain;version=1.0.0;escaping=allow-utf-8", TEXT),
        (";;;,,,q", TEXT),
    ],
)
def test_negotiation(accept: str, expected: str) -> None:
    """The preferred of two formats wins, and nothing in the header can make a scrape fail."""
    assert negotiated(accept) == expected
    assert an_exporter(small()).render(accept)[1].startswith(expected.partition(";")[0])


def test_before_the_first_digest_there_are_no_counters() -> None:
    """A zero before the store was read would look like a huge increase afterwards."""
    text = an_exporter().text()
    assert "ragwatch_build_info" in text
    assert "process_" in text
    assert "ragwatch_requests_seen_total" not in text


def test_a_new_snapshot_shows_at_once() -> None:
    """What is kept between scrapes is kept for one Snapshot only."""
    board = Board()
    shown = an_exporter(small(), board=board)
    before = shown.text()
    assert shown.text().count("ragwatch_samples_pending 3.0") == 1
    board.publish(Snapshot(at=AT, pending={"embedded": 7}))
    assert "ragwatch_samples_pending 3.0" in before
    assert "ragwatch_samples_pending 7.0" in shown.text()


def test_x12_label_values_are_escaped() -> None:
    """A configured name with quotes, backslashes and line breaks cannot forge a series."""
    route = 'a"} 1\nragwatch_forged_total{x="\\'
    text = an_exporter(Snapshot(at=AT), routes=(route,)).text()
    families = {family.name: family for family in parse_text(text)}
    assert "ragwatch_forged" not in families
    assert route in {sample.labels["route"] for sample in families["ragwatch_samples_drawn"].samples}


def lines(*criteria: Criterion) -> list[str]:
    """Lines of a scrape about the criterion."""
    tallies = counted("search", (1.0, 0.0), POLITE.quantity)
    rows = (EstimateRow(quantity_of("polite"), "search", JUDGE, "1h", estimate(0.5)),)
    snapshot = replace(small(), estimates=rows, tallies=Counter(tallies))
    shown = an_exporter(snapshot, routes=("search",), criteria=criteria)
    return [line for line in shown.text().splitlines() if "polite" in line]


def test_a_criterion_has_all_series_of_a_quantity() -> None:
    """The same names, labels and HELP as every quantity, with its question."""
    seen = lines(POLITE)
    assert {
        'ragwatch_polite_ratio{corrected="no",judge="embedded",route="search",window="1h"} 0.5',
        'ragwatch_polite_weighted_score_total{judge="embedded",route="search"} 2.0',
        'ragwatch_polite_weighted_score_total{judge="embedded",route="other"} 0.0',
        'ragwatch_polite_score_count{judge="embedded",route="search"} 2.0',
    } <= set(seen)
    (told,) = [line for line in seen if line.startswith("# HELP ragwatch_polite_ratio ")]
    assert "mean polite (share of answers with yes to: Is the tone polite?)" in told
    assert len(with_criteria((POLITE,))) == len(CATALOGUE) + len(TEMPLATES)
    names, others = ({row.name for row in rows} for rows in (with_criteria((POLITE,)), CATALOGUE))
    assert set(series_names("polite")) == names - others


def test_one_that_is_not_configured_is_not_exported() -> None:
    """Stored figures of a criterion that was removed are left out, without an error."""
    assert lines() == []


def a_row(segment: str, value: str, **parts: str) -> SegmentRow:
    """An estimate of faithfulness of a segment."""
    names = {"route": "search", "judge": "embedded", "window": "1h"} | parts
    return SegmentRow(Quantity.FAITHFULNESS, segment, value, estimate=estimate(0.6), **names)


def exported(snapshot: Snapshot, names: AllowedLabels = ALLOWED) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Values of all series of segments."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in of_snapshot(snapshot, names)
        for sample in family.samples
        if sample.name.startswith("ragwatch_segment")
    }


def test_values_and_allowed_pairs() -> None:
    """An estimate is five gauges beside its time; a value of another key, or of no key, is not exported."""
    rows = (a_row("release", "v1"), a_row("release", "free"), a_row("team", "x"), a_row("tier", "s3cr3t"))
    snapshot = replace(
        small(), segments=rows, segment_last={("faithfulness", "release", "v1", "search", "embedded"): AT}
    )
    snapshot.tallies[Tally.SEGMENT_WX, ("faithfulness", "release", "v1", "search", "embedded")] = 2.5
    snapshot.tallies[Tally.SEGMENT_WX, ("faithfulness", "release", "free", "search", "embedded")] = 7
    values = exported(snapshot)
    gauges = {name: value for (name, _), value in values.items() if not name.endswith("_total")}
    shown = {"ratio": 0.6, "ratio_low": 0.55, "ratio_high": 0.65, "samples": 40, "effective_samples": 36.0}
    shown |= {"last_sample_timestamp_seconds": AT}
    assert gauges == pytest.approx({f"ragwatch_segment_{name}": number for name, number in shown.items()})
    sums = [value for (name, _), value in values.items() if name == "ragwatch_segment_weighted_score_total" and value]
    assert sums == [2.5]
    assert not exported(replace(snapshot, segments=()), AllowedLabels(sources=[], routes=[], judges=["embedded"]))


def test_as_many_series_as_stated() -> None:
    """With every value seen, the number of series is the one that is stated before the start."""
    places = [(q, *pair, route) for q in Quantity for pair in sorted(SEGMENTS.pairs) for route in SEGMENT_ROUTES]
    rows = tuple(SegmentRow(*place, "embedded", window, estimate()) for place in places for window in WINDOWS)
    last = {(str(quantity), *place, "embedded"): AT for quantity, *place in places}
    snapshot = replace(small(), segments=rows, segment_last=last)
    stated = series_of_segments(5, 2, quantities=len(Quantity), windows=len(WINDOWS), cohorts=len(SEGMENT_ROUTES))
    assert len(exported(snapshot)) == stated
