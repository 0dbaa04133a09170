"""The month of `make month`: breakages are rows, rules the shipped ones, and the page is written from a record."""

import re
import sys
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from house.test_words import banned
from support.oncall_real import SETS
from support.programs import promtool

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "bench"))
from month import page  # noqa: E402 - beside the other benches
from month.record import Course, Happened, Notice, Record, read  # noqa: E402
from month.story import CHANGES, DAYS, ROUTES, compressed  # noqa: E402

LEVEL = [[day / 10, 0.9, 0.7, 1.0] for day in range(20)]
SHIPPED = {
    name: (ROOT / "deploy" / "prometheus" / name).read_text()
    for name in ("ragwatch-recording.yaml", "ragwatch-alerts.yaml")
}


def a_record(*notices: Notice) -> Record:
    """Two days of one route, on which the model invents from day 1 on."""
    course = Course(LEVEL, LEVEL, LEVEL[:5], {"faithfulness": [[1.1, 1.8, -0.4]]})
    begun = [number for number, change in enumerate(CHANGES) if change.route == "clapnq" and change.day < 2]
    happened = [Happened(number, CHANGES[number].day, 2.0, (1.01, 1.02, 1.3)) for number in begun]
    made = ("2026-11-28", "0.3.0", "2.42.0")
    return Record(1, 2.5, 2.0, *made, {"clapnq": 700}, 12, 0.01, happened, notices, {"clapnq": course})


DRIFT = Notice(
    "oncall", "RagwatchQualityDrift", "clapnq", "", 1.2, 2.1, "clapnq: it fell since 09:06 UTC.", "generation"
)


def test_breakages_are_rows() -> None:
    """Twelve on five routes, one after another on each, within the month, beside deploys that break nothing."""
    broken = [change for change in CHANGES if change.breakage is not None]
    assert len(broken) == 12
    assert set(ROUTES) == {change.route for change in broken} == set(SETS)
    assert len(CHANGES) - len(broken) >= 4
    for route in ROUTES:
        own = [change for change in broken if change.route == route]
        assert all(first.day + first.hours / 24 + 1 <= then.day for first, then in pairwise(own))
        assert own[-1].day + own[-1].hours / 24 + 1 < DAYS


@pytest.mark.parametrize("name", SHIPPED)
def test_rules_are_the_shipped_ones_in_shorter_hours(name: str, tmp_path: Path) -> None:
    """Only durations differ, and promtool accepts them."""
    shorter = compressed(SHIPPED[name])
    assert not re.search(r"\[\d+[smhd]\]|offset \d+[smhd]\b", shorter)
    durations = r"\d+(ms|[smhd])\b|time\(\) - [\d.]+"
    assert re.sub(durations, "", shorter) == re.sub(durations, "", SHIPPED[name])
    assert compressed("increase(a[1d] offset 6h) > time() - 3600") == "increase(a[48000ms] offset 12000ms) > time() - 2"
    (tmp_path / name).write_text(shorter)
    code, text = promtool("check", "rules", tmp_path / name)
    assert code == 0, text


def test_the_page_says_who_was_told_of_what_and_when(tmp_path: Path) -> None:
    """From a record that was kept; charts are SVG."""
    a_record(DRIFT).write(tmp_path / "record.json")
    files = page.files(read(tmp_path / "record.json"))
    assert (
        "**1 of 1 breakages that must be notified of were notified of; 0 false pages, 0 false tickets"
        in files["month.md"]
    )
    assert "| page | QualityDrift | 4.8 h, 2 | generation | +2 h |" in files["month.md"]
    assert "UTC" not in files["month.md"]
    assert banned(files["month.md"]) == []
    chart = ET.fromstring(files["month_clapnq.svg"])  # noqa: S314 - our own
    assert "QualityDrift: generation" in "".join(chart.itertext())


def test_what_is_missed_or_false_is_said() -> None:
    """A breakage that nobody was told of, a page of another route, and a wrong stage."""
    elsewhere = Notice("oncall", "RagwatchDown", "", "", 0.1, None, "a process is down.", "")
    text = page.text(a_record(elsewhere))
    assert "**missed**" in text
    assert "0 of 1 breakages" in text
    assert "1 false pages" in text
    assert "| 0.1 | - | page | Down | a process is down. |" in text
    wrong = Notice("oncall", "RagwatchQualityDrift", "clapnq", "", 1.2, 2.1, "", "retrieval")
    assert "**retrieval**, not generation" in page.text(a_record(wrong))
