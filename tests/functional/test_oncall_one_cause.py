"""One cause is one notification: what follows from a page, or from another signal, is not sent as well."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from functional.test_oncall_texts import BEGAN, BROKEN, DRIFT, HEALTHY, PHASE, PLAN, abstaining, firing, play, rules
from support.oncall_cases import Flat, Phase


@pytest.mark.parametrize(("began", "pages"), [(BEGAN, 0), (BEGAN + 3 * 3600, 1)])
def test_after_a_page_about_refusals_only_a_later_break_pages(began: float, pages: int, tmp_path: Path) -> None:
    """Scores fell because the route refused: their alarm ends later than its page. A break after the mend is told."""
    rules(PLAN, ["RagwatchTrafficDrift", DRIFT], tmp_path, texts=False)
    place = '{route="search",quantity="faithfulness"}'
    low = {**BROKEN, f"ragwatch_drift_change_start_timestamp_seconds{place}": Flat(began)}
    phases = [{**HEALTHY, **abstaining(0.3, 0)}, {**low, **abstaining(9.5, 1)}, {**low, **abstaining(0.3, 0)}]
    checks = [firing(DRIFT, 2 * PHASE - 10, 0), firing(DRIFT, 3 * PHASE - 10, pages)]
    told = play(tmp_path, phases, {"promql_expr_test": checks})
    assert "FAILED" not in told, told


@pytest.mark.parametrize(
    ("cause", "others"),
    [
        ("abstentions", ("uncited_answers", "dangling_citations")),
        ("empty_retrievals", ("abstentions", "empty_answers")),
    ],
)
@pytest.mark.parametrize("first", [0, 1])
def test_a_signal_that_follows_from_another_is_no_ticket_of_its_own(
    cause: str, others: tuple[str, ...], first: int, tmp_path: Path
) -> None:
    """Unless it was one before; then it stays."""
    rules(PLAN, ["RagwatchTrafficDrift"], tmp_path, texts=False)

    def alarms(values: Mapping[str, int]) -> Phase:
        return {
            f'ragwatch_traffic_drift_alarm{{route="search",signal="{signal}"}}': Flat(value)
            for signal, value in values.items()
        }

    phases = [alarms({cause: 0, **dict.fromkeys(others, first)}), alarms({cause: 1, **dict.fromkeys(others, 1)})]
    checks = [firing("RagwatchTrafficDrift", 2 * PHASE - 10, 1 + len(others) * first)]
    told = play(tmp_path, phases, {"promql_expr_test": checks})
    assert "FAILED" not in told, told
