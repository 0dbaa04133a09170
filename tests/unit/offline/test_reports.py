"""Reports hold whatever a reason may hold, and stay XML and Markdown."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

from ragwatch.offline.gates.gate import junit, markdown

HOSTILE = "a]]></failure><b onclick='x'> | `code` \x00\x1b[31m # *bold* &"


def a_line(**parts: Any) -> dict[str, Any]:
    """A gate line with one metric that ought to be small, failed for a hostile reason."""
    metric = {
        "metric": "contradiction",
        "section": "answers",
        "value": 0.5,
        "low": 0.4,
        "high": 0.6,
        "n": 40,
        "threshold": 0.1,
        "lower_is_better": True,
        "severity": "block",
        "pass": False,
        "applies": True,
        "reason": HOSTILE,
        "corrected": True,
        "labels": 12,
        "mean": 0.55,
        "mean_low": 0.4,
        "mean_high": 0.7,
    } | parts
    return {
        "verdict": "FAIL",
        "metrics": [metric],
        "figures": [],
        "cases": {"retrieval": 0, "generation": 40, "end_to_end": 0},
        "recommendation": HOSTILE,
        "judged": 40,
        "unread": {},
        "judge": "v`1",
        "baseline": None,
        "references": [],
    }


def since_a_baseline(link: str | None) -> dict[str, Any]:
    """The same, where one question lost, whose texts are hostile."""
    change = {"watched": True, "held": False, "described": HOSTILE}
    lost = {"id": HOSTILE, "question": HOSTILE, "link": link, "scores": {"recall@4": [1.0, 0.0]}}
    return a_line() | {"baseline": {"changes": {"recall@4": change}, "lost": [lost] * 12}}


def test_questions_that_lost_are_named_in_both() -> None:
    """Ten of them, with their scores; whatever they hold, XML stays XML, and a row of a table one row."""
    root = ET.fromstring(junit(since_a_baseline(None)))  # noqa: S314 - our own
    _, fallen = root.iter("testcase")
    (failure,) = fallen.iter("failure")
    assert fallen.get("name") == "recall@4 since the baseline"
    assert (failure.text or "").count("recall@4 1.000 -> 0.000") == 10
    assert (failure.text or "").endswith("and 2 more, in --json")
    text = markdown(since_a_baseline("https://ci.example/<q>|1"))
    rows = [line for line in text.splitlines() if line.startswith("| [a")]
    assert len(rows) == 10
    assert rows[0].replace("\\|", "").count("|") == 3
    assert "](<https://ci.example/%3Cq%3E%7C1>)" in rows[0]
    assert "\\<b onclick" in rows[0]


def test_xml_stays_well_formed() -> None:
    """Text cannot end an element, and characters that XML forbids are gone."""
    root = ET.fromstring(junit(a_line()))  # noqa: S314 - our own
    (failure,) = root.iter("failure")
    assert "0.500 [0.400, 0.600] of 40, required at most 0.1" in failure.attrib["message"]
    assert "</failure><b onclick" in failure.attrib["message"]
    assert [each.tag for each in root.iter()] == ["testsuites", "testsuite", "testcase", "failure", "system-out"]


def test_markdown_stays_a_table() -> None:
    """No cell ends early, and nothing becomes code, a heading or HTML."""
    text = markdown(a_line(severity="warn"))
    (row,) = [line for line in text.splitlines() if line.startswith("| contradiction")]
    assert row.replace("\\|", "").count("|") == 8
    assert "\\<b onclick" in text
    assert "by `v1`; not judged: none." in text
    assert "≤ 0.1" in row
    assert (
        "\ncontradiction: level in people's terms, with 12 labels; the judge's mean is 0.550 (0.400..0.700)\n" in text
    )
    assert "\njudge's mean, not corrected: contradiction\n" in markdown(a_line(corrected=False))
