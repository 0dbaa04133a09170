"""A scrape: negotiated format, from memory, valid for the parsers of prometheus_client."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from support.snapshots import AT, KEY, ROUTES, small

from ragwatch.board import Board
from ragwatch.core.snapshot import Snapshot
from ragwatch.core.tally import Tally, observe
from ragwatch.exporter import AllowedLabels, Exporter
from ragwatch.exporter.render import negotiated
from ragwatch.telemetry import Telemetry

OPENMETRICS = "application/openmetrics-text"
TEXT = "text/plain; version=0.0.4"


def exporter(snapshot: Snapshot | None, routes: tuple[str, ...] = ROUTES) -> Exporter:
    """An exporter of this Snapshot."""
    board = Board()
    if snapshot is not None:
        board.publish(snapshot)
    return Exporter(board, Telemetry(), AllowedLabels(sources=["app"], routes=routes, judges=["embedded"]))


def test_text_is_the_default() -> None:
    """Without an Accept header the answer is text 0.0.4, without exemplars."""
    body, content_type = exporter(small()).render("")
    assert content_type == "text/plain; version=0.0.4; charset=utf-8"
    assert b" # {" not in body
    names = {family.name for family in parse_text(body.decode())}
    assert {"ragwatch_faithfulness_ratio", "ragwatch_samples_drawn", "ragwatch_build_info"} <= names


def test_openmetrics_has_exemplars_and_an_end() -> None:
    """OpenMetrics carries the exemplar and is complete."""
    body, content_type = exporter(small()).render(OPENMETRICS)
    assert content_type == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert f'# {{sample_id="{KEY}",trace_id="4bf92f3577b34da6"}} 0.05 {AT - 90.0}' in body.decode()
    assert body.endswith(b"# EOF\n")
    assert "ragwatch_faithfulness_score" in {family.name for family in parse_openmetrics(body.decode())}


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
    body, _ = exporter(replace(small(), tallies=tallies)).render(OPENMETRICS)
    families = {family.name: family for family in parse_openmetrics(body.decode())}
    assert {sample.name for sample in families[name].samples} == {f"{name}_bucket"}


def test_no_created_series() -> None:
    """No child costs a second series."""
    assert "_created" not in exporter(small()).render(OPENMETRICS)[0].decode()


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
    assert exporter(small()).render(accept)[1].startswith(expected.partition(";")[0])


def test_names_narrow_the_answer() -> None:
    """`name[]` shows these samples and no other."""
    text = exporter(small()).render("", ["ragwatch_samples_drawn_total", "nothing_of_this_name"])[0].decode()
    shown = {line.partition("{")[0] for line in text.splitlines() if not line.startswith("#")}
    assert shown == {"ragwatch_samples_drawn_total"}


def test_before_the_first_digest_there_are_no_counters() -> None:
    """A zero before the store was read would look like a huge increase afterwards."""
    text = exporter(None).text()
    assert "ragwatch_build_info" in text
    assert "process_" in text
    assert "ragwatch_requests_seen_total" not in text


def test_a_new_snapshot_shows_at_once() -> None:
    """What is kept between scrapes is kept for one Snapshot only."""
    board = Board()
    shown = Exporter(board, Telemetry(), AllowedLabels(sources=["app"], routes=ROUTES, judges=["embedded"]))
    board.publish(small())
    before = shown.text()
    assert shown.text().count("ragwatch_samples_pending 3.0") == 1
    board.publish(Snapshot(at=AT, pending={"embedded": 7}))
    assert "ragwatch_samples_pending 3.0" in before
    assert "ragwatch_samples_pending 7.0" in shown.text()


def test_x12_label_values_are_escaped() -> None:
    """A configured name with quotes, backslashes and line breaks cannot forge a series."""
    route = 'a"} 1\nragwatch_forged_total{x="\\'
    text = exporter(Snapshot(at=AT), (route,)).text()
    families = {family.name: family for family in parse_text(text)}
    assert "ragwatch_forged" not in families
    assert route in {sample.labels["route"] for sample in families["ragwatch_samples_drawn"].samples}
