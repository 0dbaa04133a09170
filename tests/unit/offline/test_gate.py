"""`ragwatch gate`: exit codes, reports for builds, which stay XML and Markdown, and what is refused."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from click.testing import Result
from support.command_line import command, configured, jsonl, log_of, refused

from ragwatch.model.quantities import Quantity
from ragwatch.model.quantity_row import GateSeverity
from ragwatch.offline.gate import junit, markdown
from ragwatch.offline.gate_line import GateOutcome
from ragwatch.offline.regression import Attribution, MetricChange, Regression
from ragwatch.statistics.estimators.interval import Interval
from ragwatch.statistics.estimators.level import Level
from ragwatch.statistics.gate import GateReport, MetricFinding, MetricLimit
from ragwatch.statistics.question_scores import LostQuestion, QuestionScores
from ragwatch.statistics.relevance import CaseKind
from ragwatch.statistics.set_scores import metric_of

ROW = {"question": "Where is the mill?", "contexts": ["The old mill stands by the river."]}
GOOD, BAD = ROW | {"answer": "The old mill stands by the river."}, ROW | {"answer": "Zebras invented the telegraph."}
HOSTILE = "a]]></failure><b onclick='x'> | `code` \x00\x1b[31m # *bold* &"


def gate(*arguments: object, rows: list[Any] | None = None) -> Result:
    """The command, with these rows on its standard input."""
    return command("gate", *arguments, said=jsonl(*rows or ()))


def test_no_data_is_never_pass() -> None:
    """Nothing at all, nothing but rows that are no samples, and forty good answers with twenty torn rows."""
    assert gate(rows=[]).return_value == 3
    torn = gate("--json", rows=['{"torn', '{"torn'])
    line = json.loads(torn.stdout)
    assert (torn.return_value, line["verdict"], line["unread"]) == (3, "NOT_ENOUGH_DATA", {"torn_json": 2})
    assert gate(rows=[GOOD | {"id": str(number), "answer": " "} for number in range(50)]).return_value == 3
    assert gate("--uncorrected", rows=[GOOD] * 40).return_value == 0
    assert gate("--uncorrected", rows=[*[GOOD] * 40, *['{"torn'] * 20]).return_value == 3


def faithfulness(*arguments: object, rows: list[Any], code: int) -> dict[str, Any]:
    """The first metric of a gate line."""
    result = gate("--json", *arguments, rows=rows)
    assert result.return_value == code, result.exception
    (metric,) = [metric for metric in json.loads(result.stdout)["metrics"] if metric["metric"] == "faithfulness"]
    assert isinstance(metric, dict)
    return metric


@pytest.mark.costly
def test_a_level_that_the_judges_error_could_turn_does_not_pass(tmp_path: Path) -> None:
    """The threshold is inside the interval: not enough data, and how many labels would do; with labels it decides."""
    rows = [GOOD | {"id": str(number)} for number in range(40)]
    unknown = faithfulness(rows=rows, code=3)
    assert (unknown["corrected"], unknown["labels"], unknown["pass"], unknown["mean"]) == (True, 0, None, 1.0)
    assert unknown["low"] < 0.85 < unknown["high"]
    assert (unknown["mean_low"], unknown["mean_high"]) != (unknown["low"], unknown["high"])
    shown = gate(rows=rows).stdout
    assert re.search(
        r"faithfulness: between 0\.\d\d and 1\.00 in people's terms, threshold 0\.85: label about \d0 more answers "
        r"with `ragwatch label` or by hand for --labels, or compare the judge's mean with --uncorrected\n",
        shown,
    )
    assert "faithfulness: level in people's terms, with 0 labels; the judge's mean is 1.000 (0." in shown
    assert "judge's mean, not corrected: answer_relevancy, context_precision\n" in shown
    for score, code in ((1, 0), (0, 1)):
        labels = log_of(tmp_path / "labels.jsonl", *({"id": str(n), "faithfulness": score} for n in range(20)))
        decided = faithfulness("--labels", labels, rows=rows, code=code)
        assert (decided["labels"], decided["pass"], decided["mean"]) == (20, code == 0, 1.0)
        assert (decided["low"] >= 0.85) if code == 0 else (decided["high"] < 0.85)
    assert "labels of answers without a verdict, such as 19" in gate("--labels", labels, rows=rows[:19]).stderr
    plain = faithfulness("--uncorrected", rows=rows, code=0)
    assert (plain["corrected"], plain["labels"], plain["pass"], plain["value"]) == (False, 0, True, 1.0)
    assert "judge's mean, not corrected: faithfulness, " in gate("--uncorrected", rows=rows).stdout


@pytest.mark.costly
def test_thresholds_come_from_the_configuration(tmp_path: Path) -> None:
    """What is good enough is the configuration's word, and so is the judge."""
    rows = [*[GOOD] * 30, *[BAD] * 10]
    assert gate("--uncorrected", rows=rows).return_value == 1
    lower = configured(tmp_path, thresholds={"faithfulness": 0.5, "answer_relevancy": 0.5})
    assert gate("--uncorrected", "--config", lower, rows=rows).return_value == 0
    named = configured(tmp_path, judges=[{"name": "ours", "kind": "lexical", "support": 0.999999}])
    for judge, mean, code in (((), 0.0, 1), (("--judge", "lexical"), 1.0, 0), (("--judge", "ours"), 0.0, 1)):
        told = faithfulness("--uncorrected", "--config", named, *judge, rows=[GOOD] * 30, code=code)
        assert told["value"] == mean


@pytest.mark.costly
def test_a_baseline_names_what_became_worse(tmp_path: Path) -> None:
    """Faithfulness fell while precision held: the generator; the other way round nothing is blamed."""
    half = [GOOD | {"answer": f"{GOOD['answer']} {BAD['answer']}"}] * 40
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(gate("--json", rows=[GOOD] * 40).stdout)
    worse = gate("--json", "--baseline", good, rows=half)
    line = json.loads(worse.stdout)
    assert (line["baseline"]["regression"], line["baseline"]["recall_by"]) == ("generation", "context_precision")
    assert line["baseline"]["changes"]["faithfulness"]["change"] == pytest.approx(-0.5)
    assert "Against the baseline, by the judge's means: generation regression: " in line["recommendation"]
    assert "faithfulness fell while context precision" in line["recommendation"]
    assert worse.return_value == 1
    bad.write_text(worse.stdout, encoding="utf-16")  # as a shell of Windows writes it
    assert "no significant regression" in gate("--baseline", bad, rows=[GOOD] * 40).stdout


def test_statements_that_no_context_supports_are_named(tmp_path: Path) -> None:
    """Every report names the row, the statement, and the words that no context has; JSON has all statements."""
    junit, markdown = tmp_path / "gate.xml", tmp_path / "gate.md"
    reference = "The old mill stands by the river. It was sold in 1987."
    rows = [GOOD | {"id": "mill-1", "reference": reference}, GOOD | {"id": "mill-2", "reference": GOOD["answer"]}]
    text = gate("--junit", str(junit), "--markdown", str(markdown), rows=rows).stdout
    for report in (text, junit.read_text(), markdown.read_text()):
        assert "1 statements of the references of 1 rows are supported by no context" in report
        assert "mill-1" in report
        assert "It was sold in 1987." in report
        assert "mill-2" not in report
    (line,) = json.loads(gate("--json", rows=rows).stdout)["references"]
    assert (line["id"], line["missing"]) == ("mill-1", ["It was sold in 1987."])
    assert [(one["supported"], one["contexts"]) for one in line["statements"]] == [(True, [0]), (False, [])]


def test_reports_for_builds(tmp_path: Path) -> None:
    """JUnit: failures block, errors are unknown, warnings are skipped. Markdown: a table."""
    junit, markdown = tmp_path / "gate.xml", tmp_path / "gate.md"
    gate("--uncorrected", "--junit", str(junit), "--markdown", str(markdown), rows=[BAD] * 40)
    suite = ET.fromstring(junit.read_text())[0]  # noqa: S314 - our own
    counts = {"tests": "4", "failures": "1", "errors": "0", "skipped": "1"}
    assert {name: suite.get(name) for name in counts} == counts
    cases = {case.get("name"): case for case in suite.findall("testcase")}
    message = cases["faithfulness"].find("failure").get("message")  # type: ignore[union-attr]
    assert "required at least 0.85" in message  # type: ignore[operator]
    assert cases["context_recall"].find("skipped").get("message").startswith("warning only: unknown")  # type: ignore[union-attr]
    row = "| context recall | unknown |  | 0 | ≥ 0.8 | warn | unknown: no sample has a reference |"
    assert row in markdown.read_text()
    gate("--uncorrected", "--junit", str(junit), rows=[GOOD] * 2)
    assert ET.fromstring(junit.read_text())[0].get("errors") == "2"  # noqa: S314 - the same


def test_what_is_refused(tmp_path: Path) -> None:
    """A wrong command line is one line, and no verdict."""
    lines, other = tmp_path / "list.json", tmp_path / "other.json"
    lines.write_text("[]")
    other.write_text('{"judge": "other-1", "metrics": []}')
    for arguments, message in (
        (("--judge", "oracle"), "--judge oracle: is neither a configured judge nor a kind; use one of: "),
        (("--labels", lines, "--uncorrected"), "--labels and --uncorrected: give only one of them"),
        (("--baseline", tmp_path / "absent.json"), "cannot be read"),
        (("--baseline", lines), "is not the JSON"),
        (("--baseline", other), "was made by the judge other-1"),
    ):
        assert message in refused(gate(*arguments, rows=[GOOD]))


@pytest.mark.parametrize("grade", [None, 0, -1])
def test_a_route_without_anything_relevant_is_unknown(tmp_path: Path, grade: int | None) -> None:
    """The verdict is printed all the same, and it is not that the gate failed."""
    row = {"id": "q2", "question": "Which?", "retrieved_ids": ["c3"], "route": "b"}
    qrels = tmp_path / "qrels.tsv"
    qrels.write_text(f"q2\t0\tc3\t{grade}\n")
    result = gate(rows=[row | {"relevant_ids": []}]) if grade is None else gate("--qrels", str(qrels), rows=[row])
    assert result.return_value == 3, result.exception
    assert "route b (0 cases): unknown, no case could be ranked" in result.stdout
    assert "NOT_ENOUGH_DATA: " in result.stdout


def failed(attribution: Attribution | None = None, **parts: Any) -> GateOutcome:
    """The outcome with one metric that ought to be small, failed for a hostile reason."""
    limit = MetricLimit(Quantity.CONTRADICTION, 0.1, parts.pop("severity", GateSeverity.BLOCK))
    known = {"level": Level(0.5, 0.4, 0.6, 12), "reason": HOSTILE} | parts
    finding = MetricFinding(limit, Interval(0.55, 0.4, 0.7), 40, passed=False, **known)
    return GateOutcome(GateReport((finding,), 40, {}, {}, kinds={CaseKind.GENERATION: 40}), "v`1", attribution)


def since_a_baseline(link: str | None) -> GateOutcome:
    """The same, where recall fell and one question lost twelve times, whose texts are hostile."""
    recall, mrr = metric_of("recall@4"), metric_of("mrr")
    changes = {one: MetricChange(one, None, watched=True, held=one is mrr) for one in (recall, mrr)}
    lost = LostQuestion(QuestionScores(HOSTILE, HOSTILE, link, "", {}), {"recall@4": (1.0, 0.0)})
    return failed(Attribution(Regression.RETRIEVAL, recall, changes, (lost,) * 12))


def test_questions_that_lost_are_named_in_both() -> None:
    """Ten of them, with their scores; whatever they hold, XML stays XML, and a row of a table one row."""
    root = ET.fromstring(junit(since_a_baseline(None)))  # noqa: S314 - our own
    _, fallen, held = root.iter("testcase")
    (failure,) = fallen.iter("failure")
    assert (held.get("name"), list(held)) == ("mrr since the baseline", [])
    assert fallen.get("name") == "recall@4 since the baseline"
    assert (failure.text or "").count("recall@4 1.000 -> 0.000") == 10
    assert (failure.text or "").endswith("and 2 more, in --json")
    text = markdown(since_a_baseline("https://ci.example/<q>|1"))
    rows = [line for line in text.splitlines() if line.startswith("| [a")]
    assert len(rows) == 10
    assert rows[0].replace("\\|", "").count("|") == 3
    assert "](<https://ci.example/%3Cq%3E%7C1>)" in rows[0]
    assert "\\<b onclick" in rows[0]


def test_xml_stays_well_formed_and_markdown_a_table() -> None:
    """Text ends no element and no cell, what XML forbids is gone, and nothing becomes code, a heading or HTML."""
    root = ET.fromstring(junit(failed()))  # noqa: S314 - our own
    (failure,) = root.iter("failure")
    assert "0.500 [0.400, 0.600] of 40, required at most 0.1" in failure.attrib["message"]
    assert "</failure><b onclick" in failure.attrib["message"]
    assert [each.tag for each in root.iter()] == ["testsuites", "testsuite", "testcase", "failure", "system-out"]
    text = markdown(failed(severity=GateSeverity.WARN))
    (row,) = [line for line in text.splitlines() if line.startswith("| contradiction")]
    assert row.replace("\\|", "").count("|") == 8
    assert "\\<b onclick" in text
    assert "by `v1`; not judged: none." in text
    assert "≤ 0.1" in row
    assert (
        "\ncontradiction: level in people's terms, with 12 labels; the judge's mean is 0.550 (0.400..0.700)\n" in text
    )
    assert "\njudge's mean, not corrected: contradiction\n" in markdown(failed(level=None))
