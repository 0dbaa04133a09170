"""`ragwatch label --relevance`: from a retriever to judgements, recall, qrels and a suite."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result
from support.command_line import command, configured, log_of, refused
from support.programs import free_port
from support.retrievers import FaultyRetriever, serving

from ragwatch.commands.label_relevance import RelevanceFile, qrels, suite_lines
from ragwatch.config.canaries import read_suite
from ragwatch.errors import ConfigError
from ragwatch.formats.relevance import parse_qrels
from ragwatch.offline.relevance_estimate import Candidate, Grade, QueryPool
from ragwatch.statistics.canary.definition import Canary, Expected

PROBE = {"kind": "http", "body": {"query": "{{ query }}"}, "contexts": "hits", "score": "similarity"}
ITEMS = [{"query": "cats", "expected": ["d9"], "name": "cats"}]


@pytest.fixture
def address() -> Iterator[str]:
    """A retriever that returns d1 and d2."""
    with serving(*FaultyRetriever().routes()) as found:
        yield found


def written(folder: Path, address: str) -> Path:
    """A configuration with one suite, whose k is 1, and a corpus of five contexts."""
    suite = {"suite": "docs", "k": [1], "items": ITEMS, "probe": PROBE | {"url": f"{address}/search"}}
    rows = [{"id": f"d{number}", "text": f"Text {number}."} for number in range(1, 6)]
    log_of(folder / "corpus.jsonl", *rows, "")
    return configured(folder, canaries=[suite])


def label(config: Path, *arguments: str, said: str = "", annotator: str = "ann") -> Result:
    """The command, with what is typed."""
    file = config.parent / "relevance.jsonl"
    words = ("label", "--config", config, "--annotator", annotator, "--relevance", file)
    return command(*words, *arguments, said=said)


def test_from_a_retriever_to_a_suite(tmp_path: Path, address: str) -> None:
    """Two annotators judge the top, one context below it and negatives; the result is read as qrels and a suite."""
    config, corpus = written(tmp_path, address), str(tmp_path / "corpus.jsonl")
    first = label(config, "--corpus", corpus, said="x\nh\n-\nq\n")
    assert first.exit_code == 0, first.output
    assert "'x' is none of n, r, h, -, q" in first.output
    assert "recall@1 unknown" in first.output
    second = label(config, "--corpus", corpus, said="r\nr\nr\nr\n")
    assert "4 saved" in second.output
    assert "5 pairs of a query and a context to judge, of 5 that there are" in second.output
    assert "recall@1 0.20 (0.20-0.20)" in second.output
    assert "0.80 (0.80-0.80) of the relevant contexts lie outside its first 1" in second.output
    assert "agreement unknown" in second.output
    assert "There is nothing to judge" in label(config).output
    assert "Krippendorff's alpha" in label(config, annotator="bob", said="r\nr\nn\nr\nr\n").output
    result = label(config, "--qrels", str(tmp_path / "qrels.tsv"), "--suite-out", str(tmp_path / "suite.jsonl"))
    assert result.exit_code == 0, result.output
    judged = parse_qrels((tmp_path / "qrels.tsv").read_text(), "qrels.tsv")
    (canary,) = read_suite(tmp_path / "suite.jsonl")
    assert [one.id for one in canary.expected] == [one.id for one in judged["cats"]]
    assert len(canary.expected) == 4
    (tmp_path / "relevance.jsonl").unlink()
    assert "recall may be lower" in label(config, "--below", "0", said="r\n").output


def test_a_retriever_that_is_down_gives_no_pool(tmp_path: Path) -> None:
    """The query is left out with the reason; the next run asks again."""
    config = written(tmp_path, f"http://127.0.0.1:{free_port()}")
    result = label(config)
    assert result.return_value == 1
    assert "cats: left out: connect" in result.stderr
    assert "1 of 1 queries were left out: connect 1; the next run asks" in result.stderr
    assert "There is nothing to judge: some queries have no candidates." in result.stdout
    assert "0 queries" in result.stdout


def test_what_cannot_be_read_or_written_is_named(tmp_path: Path) -> None:
    """Option, file and line; a missing suite by its key."""
    config = written(tmp_path, "http://127.0.0.1:1")
    for arguments, message in (
        (("--suite", "other"), "--suite other: is not configured; use one of: docs"),
        (("--corpus", str(tmp_path / "none")), "none: cannot be read"),
        (("--corpus", str(config)), "ragwatch.yaml line 1: is not"),
        (("--suite-out", str(tmp_path / "suite.yaml")), "ends in .jsonl"),
        (("--qrels", str(tmp_path / "no" / "where")), "cannot be written"),
    ):
        assert message in refused(label(config, *arguments))
    file = tmp_path / "relevance.jsonl"
    file.write_text("\n{}\n")
    assert "line 2: is no pool and no judgement" in str(label(config).exception)
    file.write_bytes(b"\xff")
    assert "cannot be read" in str(label(config).exception)
    configured(tmp_path)
    for none in (label(config), label(config, "--suite", "docs")):
        assert refused(none).startswith("canaries: none is configured; add a suite")


def test_a_query_without_anything_relevant_is_negative(tmp_path: Path) -> None:
    """Only where every candidate is judged; white space is in no column of qrels; a file must be writable."""
    file = RelevanceFile(tmp_path / "relevance.jsonl", {}, {})
    canaries = [Canary("a name", "a", (Expected("d9"),)), Canary("b", "b", (Expected("d9"),))]
    candidates = [Candidate(query, "d1", "", rank=1, stratum="top", probability=1.0) for query in "ab"]
    pools = [QueryPool(one.query, 1, (one,), {"top": 1}) for one in candidates]
    for pool in pools:
        file.add(pool)
    file.judge(candidates[0], "ann", Grade.NOT_RELEVANT)
    (line,) = suite_lines(canaries, file.pools, file.grades).splitlines()
    assert json.loads(line) == {"query": "a", "name": "a name", "category": "negative"}
    with pytest.raises(ConfigError, match="'a name' contains white space"):
        qrels(canaries, file.grades)
    assert RelevanceFile.read(file.path) == file
    with pytest.raises(ConfigError, match="cannot be written"):
        RelevanceFile(tmp_path / "no" / "where", {}, {}).add(pools[0])
