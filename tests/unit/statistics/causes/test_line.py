"""Causes as JSON and in words."""

import json
from dataclasses import replace

import pytest
from support.hostile import HOSTILE
from support.slices import BEGIN, traffic

from ragwatch.statistics.causes.line import cause_line, findings_line, sentence
from ragwatch.statistics.causes.search import Cause, Findings, find_causes
from ragwatch.statistics.causes.slices import Attribute, Slice

FINDINGS = Findings(answers=1000, failing=100, begin=0.0, end=86_000.0)


def clock(at: float) -> str:
    """Hours and minutes."""
    return f"{int(at // 3600):02}:{int(at // 60 % 60):02}"


def a_cause(attribute: str = "context", value: str = "doc-42", **parts: float) -> Cause:
    """A cause that has begun at 14:10 and goes on."""
    shares = {"failing": 0.9, "others": 0.1, "low": 0.8, "high": 0.95, "of_failing": 0.71, "of_passing": 0.03}
    found = {"log_e": 20.0, "explains": 0.64, "since": 51_000.0, "until": 86_000.0} | shares | parts
    return Cause(slice=Slice(attribute, value, range(100)), **found)


def test_a_cause_in_a_few_words() -> None:
    """What, how much, since when, and its part of the failures."""
    said = "doc-42 is in 71 % of failing answers and 3 % of the others; since 14:10 UTC; explains 64 % of the failures"
    assert sentence(a_cause(), FINDINGS, clock) == said
    assert "since" not in sentence(a_cause(since=10.0), FINDINGS, clock)
    assert "; from 14:10 to 19:26 UTC; " in sentence(a_cause(until=70_000.0), FINDINGS, clock)
    assert sentence(a_cause(), replace(FINDINGS, begin=None), clock).count(";") == 1
    assert sentence(a_cause(of_passing=0.0042), FINDINGS, clock).startswith(
        "doc-42 is in 71 % of failing answers and 0.4 %"
    )


@pytest.mark.parametrize("attribute", [*Attribute, "metadata.release"])
def test_every_attribute_has_words(attribute: str) -> None:
    """Each names its value."""
    assert "v2" in sentence(a_cause(attribute, "v2"), FINDINGS, clock)


def test_hostile_values_are_data() -> None:
    """Braces and percent signs in a value are no templates, and the JSON holds it unchanged."""
    for text in HOSTILE:
        for attribute in ("term", f"metadata.{text}"):
            line = json.loads(json.dumps(cause_line(a_cause(attribute, text), FINDINGS, clock)))
            assert line["value"] == text
            assert text in line["text"]


def test_the_fields_of_the_contract() -> None:
    """The API has these names; shares lie in [0, 1]; infinite evidence is a number."""
    line = cause_line(a_cause(log_e=9999.0), FINDINGS, clock)
    assert {"attribute", "value", "failing", "others", "low", "high", "explains", "since", "n"} <= set(line)
    assert (line["failing"], line["others"], line["n"], line["since"]) == (0.9, 0.1, 100, 51_000.0)
    assert line["e_value"] > 1e300
    several = replace(a_cause(), slice=Slice("missing_context", "a and 2 more", range(9), ("a", "b", "c")))
    assert cause_line(several, FINDINGS, clock)["values"] == ["a", "b", "c"]


def test_findings_as_json() -> None:
    """Counts beside the causes; without answers the share is unknown."""
    assert findings_line(Findings(), clock)["share"] is None
    line = findings_line(find_causes(traffic(900, 0.3, seed=2)), clock)
    assert (line["answers"], line["begin"], line["end"]) == (900, BEGIN, BEGIN + 899)
    assert [(cause["attribute"], cause["value"]) for cause in line["causes"]] == [("metadata.release", "v2")]
