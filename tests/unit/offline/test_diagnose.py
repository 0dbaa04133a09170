"""`ragwatch diagnose`: the checklist over a state directory and runs of canaries."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.canaries import SUBJECTS, a_canary, a_reply, a_report
from support.command_line import command, configured, refused
from support.kit import JUDGE, a_claim, a_draw, a_stored_line, a_verdict, an_admission, an_evidence
from support.retrievers import FaultyRetriever, serving

from ragwatch.model.evidence import Cell
from ragwatch.model.sample import Context
from ragwatch.offline.diagnosis.definition import RelevanceSource
from ragwatch.offline.diagnosis.diagnose import question_of
from ragwatch.ports import StoredRun
from ragwatch.statistics.canary.history import to_record
from ragwatch.statistics.tally import Tallies
from ragwatch.statistics.verdict_line import parse_verdict_line
from ragwatch.stores.sqlite.store import SqliteStore

PROBE = {"kind": "http", "body": {"query": "{{ query }}"}, "contexts": "hits", "score": "similarity"}
ITEMS = [{"query": f"What about {subject}?", "expected": ["d1"]} for subject in SUBJECTS]
diagnose = partial(command, "diagnose", "--config")


def a_config(folder: Path, url: str | None = "http://127.0.0.1:1/search") -> str:
    """A configuration over a state directory, with a suite."""
    suites = [] if url is None else [{"suite": "docs", "k": [1, 5], "items": ITEMS, "probe": PROBE | {"url": url}}]
    judges = [{"name": JUDGE, "kind": "lexical"}]
    return str(configured(folder, routes=["search"], judges=judges, canaries=suites))


@pytest.fixture
def store(store: SqliteStore) -> SqliteStore:
    """The store of a running daemon with a dozen answers from torn chunks, and a run in which nothing was retrieved."""
    draws = []
    for number, subject in enumerate(SUBJECTS):
        torn = f"of {subject}. The rest of the sentence stands elsewhere in this"
        rest = f"document of {subject}, and this is where it ends. Quite So."
        contexts = (Context(torn, f"{subject}.md#1", 0.9), Context(rest, f"{subject}.md#2", 0.8))
        draws.append(a_draw(f"r{number}", question=f"Reimbursement for {subject}?", contexts=contexts))
    joint = replace(a_claim((1, 1)), cells=(Cell.JOINTLY, Cell.JOINTLY))
    store.admit(an_admission(*draws))
    store.settle([a_verdict(draw, an_evidence(joint)) for draw in draws])
    reports = [a_report(a_canary("d1", name=subject), a_reply("x", "y"), 5) for subject in SUBJECTS]
    body: dict[str, Any] = {"ks": [1, 5], "reports": [to_record(report) for report in reports]}
    store.record_run(StoredRun("canary", "docs", 1.0, failing=True, body=body), Tallies())
    return store


@pytest.mark.usefixtures("store")
def test_the_checklist_over_a_state(tmp_path: Path) -> None:
    """While the daemon holds its state: problems by importance, each with evidence, samples to look at and remedy."""
    result = diagnose(a_config(tmp_path), "--json", "--route", "search")
    line = json.loads(result.stdout)
    assert (result.return_value, line["answers"], line["canaries"], line["route"]) == (1, 12, 12, "search")
    by_check = {finding["check"]: finding for finding in line["findings"]}
    assert by_check["recall"]["summary"].startswith("12 of 12 expected chunks (100 %) are not among the first 2")
    assert "mostly indexing" in by_check["recall"]["summary"]
    assert by_check["chunk_boundaries"]["figures"] == {"claims": 12, "joint": 12, "split": 12, "sentences": 0}
    assert by_check["chunk_coherence"]["status"] == "problem"
    assert by_check["vocabulary"]["evidence"][0].startswith("most frequent: reimbursement (12)")
    assert by_check["freshness"]["status"] == "not_measurable"
    importance = [finding["importance"] for finding in line["findings"]]
    assert importance == sorted(importance, reverse=True)
    shown = " ".join(diagnose(a_config(tmp_path)).stdout.split())
    assert "look at: r11, r10, r9, r8, r7 remedy: Let chunks overlap" in shown
    other = diagnose(a_config(tmp_path, None), "--route", "other")
    assert (other.return_value, "0 stored answers" in other.stdout) == (3, True)
    gone = refused(diagnose(a_config(tmp_path), "--route", "nowhere"))
    assert "--route nowhere: is not configured; use one of: search, other" in gone


@pytest.mark.usefixtures("store")
def test_what_options_add(tmp_path: Path) -> None:
    """Canaries are asked now, with a larger k; judgements in a file replace the verdict; similar pairs are supplied."""
    with serving(*FaultyRetriever().routes()) as address:
        line = json.loads(diagnose(a_config(tmp_path, f"{address}/search"), "--k", "40", "--json").stdout)
    recall = next(finding for finding in line["findings"] if finding["check"] == "recall")
    assert (recall["status"], recall["figures"]["deepest_k"], recall["figures"]["recall@40"]) == ("fine", 40, 1.0)
    assert "--k: no suite is configured; add `canaries`" in refused(diagnose(a_config(tmp_path, None), "--k", "40"))
    rows = [f"r{number}\t{subject}.md#2\t1" for number, subject in enumerate(SUBJECTS)]
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(rows))
    arguments = (a_config(tmp_path), "--qrels", str(tmp_path / "qrels.tsv"), "--json")
    line = json.loads(diagnose(*arguments).stdout)
    assert line["relevance"] == {"labels": 12}
    ranking = next(finding for finding in line["findings"] if finding["check"] == "ranking")
    assert (ranking["share"], ranking["status"]) == (1.0, "problem")
    file = tmp_path / "similar.tsv"
    file.write_text("".join(f"{subject}.md#1\t{subject}.md#2\n" for subject in SUBJECTS) + "\n")
    for options, summary in (
        ((), "not measurable here because fewer than 5 known similar pairs (--similar FILE"),
        (("--similar", str(file)), "12 of 12 similar pairs have different scores for one question"),
    ):
        result = diagnose(a_config(tmp_path), "--json", *options)
        finding = next(one for one in json.loads(result.stdout)["findings"] if one["check"] == "embedding")
        assert finding["summary"].startswith(summary)
    file.write_text("a\tb\nc\n")
    said = str(diagnose(a_config(tmp_path), "--similar", str(file)).exception)
    assert "line 2 is no pair; write two different ids" in said
    assert "cannot be read" in str(diagnose(a_config(tmp_path), "--similar", str(tmp_path / "none")).exception)


def test_a_run_that_fails_is_told(tmp_path: Path) -> None:
    """Canaries are configured, and their endpoint is down: neither fine nor a reason to add some."""
    SqliteStore(tmp_path / "state").close()
    result = diagnose(a_config(tmp_path), "--k", "5", "--json")
    assert result.return_value == 3
    assert "suite docs: 12 of 12 queries failed; what-about-" in result.stderr
    assert ": connect: " in result.stderr
    recall = next(finding for finding in json.loads(result.stdout)["findings"] if finding["check"] == "recall")
    assert "12 of 12 queries of canaries failed (connect 12)" in recall["summary"]
    assert "add `canaries`" not in result.stdout


def test_damaged_and_missing_runs_are_left_out(tmp_path: Path, store: SqliteStore) -> None:
    """A run of another version, or one that cannot be decoded, is as good as none."""
    store.record_run(StoredRun("canary", "docs", 2.0, failing=True, body={"ks": "?"}), Tallies())
    assert json.loads(diagnose(a_config(tmp_path), "--json").stdout)["canaries"] == 0
    for damage in ("UPDATE runs SET body = x'00'", "DELETE FROM runs"):
        with store.engine.transaction() as writer:
            writer.execute(damage)
        assert json.loads(diagnose(a_config(tmp_path), "--json").stdout)["canaries"] == 0


@pytest.mark.parametrize(
    "labelled", [["d2", 7], {"d2": 2, "d1": 0}, [{"id": "d2", "grade": 2}, {"id": "d1", "grade": 0}]]
)
def test_relevance_by_people_replaces_the_verdict(labelled: object) -> None:
    """Ids, or grades by id, in the sample or in its metadata."""
    contexts = [{"id": "d1", "text": "One.", "score": 0.9}, {"id": "d2", "text": "Two.", "score": None}, {"text": "3"}]
    contexts[1]["updated_at"] = 1777629600.0
    verdict = parse_verdict_line(a_stored_line(a_verdict(), stage="retrieval"))
    for sample in ({"relevant_ids": labelled}, {"metadata": {"relevant_ids": labelled, "indexed_at": "2024-05-06T07"}}):
        question = question_of(verdict, {"contexts": contexts, **sample}, {})
        assert [chunk.relevant for chunk in question.chunks] == [False, True, False]
        assert (question.relevance, question.retrieval_failed) == (RelevanceSource.LABELS, True)
    assert question.dates == ("2024-05-06", "2026-05-01")
    texts = {"relevant_ids": [], "relevant_texts": ["3", {"text": "One."}]}
    by_text = question_of(verdict, {"contexts": contexts, **texts}, {})
    assert [chunk.relevant for chunk in by_text.chunks] == [True, False, True]
    judged = question_of(parse_verdict_line(a_stored_line(stage=None)), {"contexts": contexts}, {})
    assert [chunk.relevant for chunk in judged.chunks] == [True, False, None]
    assert (judged.relevance, judged.retrieval_failed, judged.together) == (RelevanceSource.JUDGE, None, ((),))
