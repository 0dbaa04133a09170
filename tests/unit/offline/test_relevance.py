"""Relevance judgements in `gate` and `compare`: rows, qrels files, two kinds of test cases in one file."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from support.command_line import command, configured, jsonl, log_of, refused

SEED_2 = {"id": "q1", "question": "Which?", "retrieved_ids": ["c3", "c1", "c9", "c2"], "relevant_ids": ["c1", "c2"]}
EXAMPLES = Path(__file__).parents[3] / "docs" / "examples" / "relevance"
GENERATION = {
    "question": "Where is the mill?",
    "contexts": ["The old mill stands by the river."],
    "answer": "The old mill stands by the river.",
}


def run(*arguments: object, rows: list[Any] | None = None) -> Result:
    """A command, with these rows on its standard input."""
    return command(*arguments, said=jsonl(*rows or ()))


def figures(result: Result) -> dict[str, float]:
    """Ranking metrics of a gate line, rounded."""
    rows = json.loads(result.stdout)["figures"]
    return {row["metric"]: round(row["value"], 4) for row in rows if row["section"] == "retrieval"}


@pytest.mark.parametrize(
    ("extra", "code"),
    [
        ({"gate": {"metrics": {"recall@3": 0.5}}}, 0),  # the defaults of answers stay, and do not apply
        ({"thresholds": {}, "gate": {"metrics": {"recall@3": 0.5}}}, 0),
        ({"thresholds": {}, "gate": {"metrics": {"recall@3": 0.6}}}, 1),
        ({"thresholds": {}}, 3),
        ({}, 3),
    ],
)
def test_retrieval_stands_alone(tmp_path: Path, extra: dict[str, Any], code: int) -> None:
    """A set that meets its blocking recall passes though nothing is judged; without such a threshold nothing does."""
    rows = [SEED_2 | {"id": str(number), "route": "search"} for number in range(30)]
    junit = tmp_path / "gate.xml"
    result = run("gate", "--config", configured(tmp_path, routes=["search"], **extra), "--junit", str(junit), rows=rows)
    assert result.return_value == code, result.stdout
    assert "Retrieval: 30 test cases with relevance judgements; no row has an answer" in result.stdout
    assert "faithfulness" not in result.stdout
    assert 'errors="0"' in junit.read_text()
    assert ("no metric blocks; set one for retrieval alone" in result.stdout) is (code == 3)
    assert ("recall@3 failed; the stage at fault is retrieval" in result.stdout) is (code == 1)
    assert "route search (30 cases): recall@" in result.stdout
    if extra == {"thresholds": {}}:  # nothing blocks, and the figures of answers are not those of the defaults
        answers = run("gate", "--json", "--config", configured(tmp_path, **extra), rows=[GENERATION] * 30)
        assert (json.loads(answers.stdout)["metrics"], answers.return_value) == ([], 3)


def test_what_was_retrieved_beside_what_the_generator_saw() -> None:
    """`contexts` without ids, `retrieved_ids` and an answer: recall is that of the ids, and the answer is judged."""
    row = GENERATION | {"id": "e1", "retrieved_ids": ["c3", "c1", "c9"], "relevant_ids": ["c1", "c2"]}
    line = json.loads(run("gate", "--json", "--k", "3", rows=[row]).stdout)
    values = {one["metric"]: one["value"] for one in (*line["figures"], *line["metrics"])}
    assert (values["recall@3"], line["unranked"], line["judged"]) == (0.5, {}, 1)
    verdict = json.loads(run("judge", rows=[row]).stdout)
    assert (verdict["scores"]["faithfulness"], verdict["ranking"]["recall@3"]) == (1.0, 0.5)
    texts = row | {"retrieved_ids": ["c3"], "relevant_ids": None, "relevant_texts": GENERATION["contexts"]}
    assert json.loads(run("judge", rows=[texts]).stdout)["ranking"]["recall@1"] == 1.0
    bad = run("judge", rows=[row | {"retrieved_ids": "c3"}])
    assert (bad.return_value, "retrieved_ids: must be a list, not text" in bad.stderr) == (1, True)


def test_other_names_of_a_reference() -> None:
    """A text under these names is the reference; a list of ids under one is not."""
    for name in ("reference_answer", "ground_truth", "expected_answer"):
        row = GENERATION | {name: "The mill stands by the river."}
        assert json.loads(run("judge", rows=[row]).stdout)["reference"]["context_recall"] == 1.0
        assert json.loads(run("judge", rows=[row | {name: ["c1"]}]).stdout)["reference"] is None


def ranked_rows(hits: int, total: int) -> list[dict[str, Any]]:
    """So many rows without an answer, of which the first few have their passage at rank 4."""
    ids = [["x", "y", "z", "good" if number < hits else "bad"] for number in range(total)]
    asked = [{"id": f"r{number}", "question": f"Why {number}?", "relevant_ids": ["good"]} for number in range(total)]
    return [row | {"retrieved_ids": retrieved} for row, retrieved in zip(asked, ids, strict=True)]


def test_a_fall_of_recall_fails_the_build_and_names_the_questions(tmp_path: Path) -> None:
    """Recall@4 .875 -> .500 over 40 rows: every report names what was lost."""
    baseline, junit, markdown = (tmp_path / name for name in ("good.json", "gate.xml", "gate.md"))
    baseline.write_text(run("gate", "--json", "--k", "4", rows=ranked_rows(35, 40)).stdout)
    rows = [row | {"metadata": {"url": f"https://ci.example/{row['id']}"}} for row in ranked_rows(20, 40)]
    options = ("--baseline", str(baseline), "--junit", str(junit), "--markdown", str(markdown))
    result = run("gate", *options, rows=rows)
    assert result.return_value == 1
    assert "FAIL: Against the baseline: " in result.stdout
    assert "recall@4 0.875 -> 0.500 (-0.375, " in result.stdout
    assert "too few to tell" not in result.stdout
    assert "r20 (Why 20?) https://ci.example/r20: recall@4 1.000 -> 0.000" in result.stdout
    assert "r20 (Why 20?)" in junit.read_text()
    assert "[r20 (Why 20?)](<https://ci.example/r20>)" in markdown.read_text()
    line = json.loads(run("gate", *options, "--json", rows=rows).stdout)
    assert line["baseline"]["lost"][0]["id"] == "r20"
    same = run("gate", "--baseline", str(baseline), rows=ranked_rows(35, 40))
    assert (same.return_value, "no significant regression: recall@4 did not fall" in same.stdout) == (0, True)


def test_questions_in_a_report_are_redacted(tmp_path: Path) -> None:
    """What the configuration redacts stands in no baseline, of rows with an answer and of those without."""
    config = configured(tmp_path)
    secret = {"question": "Whose is jane.roe@example.com?"}
    rows = [GENERATION | secret | {"id": "a", "relevant_ids": ["c1"]}, SEED_2 | secret]
    shown = run("gate", "--json", "--config", config, rows=rows).stdout
    assert [one["id"] for one in json.loads(shown)["questions"]] == ["a", "q1"]
    assert "jane.roe" not in shown


def test_qrels_in_both_formats(tmp_path: Path) -> None:
    """Grades weigh in NDCG; the file goes before the row; judgements of no row, and no text, are told."""
    path = tmp_path / "qrels.tsv"
    bare = {key: value for key, value in SEED_2.items() if key != "relevant_ids"}
    trec = "q1 0 c1 1\nq1 0 c2 2\nq9 0 c1 1\n"
    beir = "query-id\tcorpus-id\tscore\nq1\tc1\t1\nq1\tc2\t2\nq9\tc1\t1\n"
    for text, row in itertools.product((trec, beir), (bare, bare | {"relevant_ids": ["c7"]})):
        path.write_text(text)
        result = run("gate", "--json", "--k", "4", "--qrels", str(path), rows=[row])
        assert figures(result)["ndcg@4"] == pytest.approx(0.5671, abs=1e-4)
        assert figures(result)["recall@4"] == 1.0
        assert "1 of 2 queries have no row with their id, such as q9" in result.stderr
    path.write_bytes(b"\xff\xfe\n")
    assert re.match("--qrels .*qrels.tsv: cannot be read", refused(run("gate", "--qrels", str(path), rows=[SEED_2])))


def test_rows_that_are_no_test_case_are_rejected() -> None:
    """Counted by reason, as any row; the others are ranked."""
    rejected: list[tuple[dict[str, Any], str]] = [
        (SEED_2 | {"retrieved_ids": "c1"}, "wrong_type"),
        (SEED_2 | {"relevant_ids": "c1"}, "wrong_type"),
        ({"question": "Why?", "contexts": [{"score": 1.0}], "relevant_ids": ["c1"]}, "missing_field"),
        ({"question": "Why?", "relevant_ids": ["c1"]}, "unknown_format"),
        ({"question": "Why?", "contexts": ["One."]}, "unknown_format"),
    ]
    for row, reason in rejected:
        line = json.loads(run("gate", "--json", rows=[row, SEED_2]).stdout)
        assert (line["unread"], line["cases"]["retrieval"]) == ({reason: 1}, 1), row


def test_contexts_are_relevant_by_id_or_by_text(tmp_path: Path) -> None:
    """A text that is nearly the same counts; without an id it is unknown, not 0; a mapping may name the ids."""
    texts = {"question": "Why?", "contexts": ["One."], "relevant_ids": ["c1"]}
    assert "relevance judgements without a ranking: no_ids 1" in run("gate", rows=[texts, SEED_2]).stdout
    nearly = {"question": "Why?", "contexts": ["Dogs bark.", "Cats  purr."], "relevant_texts": ["Cats purr."]}
    for rows in ([texts, SEED_2], [nearly]):
        assert figures(run("gate", "--json", rows=rows))["mrr"] == 0.5
    mapping = {"question": "q", "contexts": "hits[].{id: id, text: body}", "answer": "out", "relevant_ids": "gold"}
    source = {"kind": "tail", "name": "app", "path": "/no/*.log", "format": "custom", "mapping": mapping}
    path = configured(tmp_path, sources=[source])
    row = {"q": "Why?", "hits": [{"id": "c9"}, {"id": "c1", "body": "One."}], "gold": ["c1"]}
    assert figures(run("gate", "--config", str(path), "--json", rows=[row]))["mrr"] == 0.5


def test_compare_and_judge_take_retrieval_alone(tmp_path: Path) -> None:
    """Recall@4 .875 -> .500 over 40 questions is worse: exit code 1, and 3 if nothing can be compared."""
    a, b, both, none = (str(tmp_path / name) for name in ("a", "b", "both", "none"))
    sides = {"a": ranked_rows(35, 40), "b": ranked_rows(20, 40)}
    for name, rows in sides.items():
        log_of(tmp_path / name, *(row | {"metadata": {"variant": name}} for row in rows))
    Path(both).write_text(Path(a).read_text() + Path(b).read_text())
    Path(none).write_text("")
    result = run("compare", a, b, "--k", "4")
    assert (result.return_value, result.exception) == (1, None)
    assert re.search(r"recall@4 +0\.875 +0\.500 +-0\.375", result.stdout)
    assert "Retrieval, by relevance judgements: 40 questions are on both sides" in " ".join(result.stdout.split())
    line = json.loads(run("compare", b, a, "--k", "4", "--json").stdout)
    metrics = {row["metric"]: row for row in line["retrieval"]["metrics"]}
    assert (metrics["recall@4"]["difference"], metrics["recall@4"]["conclusion"]) == (0.375, "better")
    assert run("compare", "a", "b", "--log", both).return_value == 1
    assert run("compare", a, none).return_value == 3
    judged = run("judge", b)
    assert (judged.return_value, judged.stdout.count('"outcome": "ranked"')) == (0, 40)
    assert re.search(r"recall@5 +│ 0\.500", judged.stderr)


def test_the_shipped_examples() -> None:
    """Requirements item 19 and their README: recall@3 .50, precision@3 .33, MRR .50, without answer and judge."""
    cases = str(EXAMPLES / "cases.jsonl")
    plain = run("gate", cases, "--k", "3", "--json")
    at_3 = {"recall": 0.5, "precision": 0.3333, "f1": 0.4, "ndcg": 0.3869, "context_precision": 0.5}
    assert figures(plain) == {f"{name}@3": value for name, value in at_3.items()} | {"mrr": 0.5}
    line = json.loads(plain.stdout)
    assert (line["judged"], line["cases"]) == (1, {"retrieval": 1, "generation": 1, "end_to_end": 0})
    for name in ("qrels.tsv", "qrels.trec"):
        assert figures(run("gate", cases, "--k", "4", "--qrels", str(EXAMPLES / name), "--json"))["ndcg@4"] == 0.5672


def test_the_page_on_continuous_integration_shows_what_the_log_shows(tmp_path: Path) -> None:
    """docs/ci.md: the baseline passes, and a pull request that loses two of 40 questions ends with exit code 3."""
    folder = EXAMPLES.parent / "ci"
    options = ("--config", str(folder / "ragwatch.yaml"), "--k", "5")
    good = run("gate", str(folder / "main.jsonl"), *options, "--json")
    baseline = tmp_path / "baseline.json"
    baseline.write_text(good.stdout.replace(json.loads(good.stdout)["judge"], "of an older version"))
    worse = run("gate", str(folder / "pull_request.jsonl"), *options, "--baseline", str(baseline))
    assert (good.return_value, worse.return_value) == (0, 3)
    page = (EXAMPLES.parents[1] / "ci.md").read_text(encoding="utf-8")
    assert "\n".join(worse.stdout.splitlines()[-4:]) in page
