"""Services whose logs are not one answer a line: from `init` to figures in three commands, and no line is lost."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from functional.forked import run_forked

NUMBER = 24
TRACEBACK = "Traceback (most recent call last):\n  File 'app.py', line 3, in ask\nTimeoutError\n"


class Service(NamedTuple):
    """A service, and what has to be counted of its log."""

    write: Callable[[Path], None]  # writes its log into a folder
    files: tuple[str, ...]  # names of the files to map
    path: str  # pattern of the files to read
    others: Mapping[str, int]  # number of lines by series and labels that are no answers


def question(number: int) -> str:
    """A question."""
    return f"When was mill number {number} built?"


def passages(number: int) -> list[str]:
    """What was retrieved."""
    return [f"Mill number {number} was built in 18{number:02}.", f"Mill number {number} stands by the river."]


def answer(number: int) -> str:
    """An answer that the passages support."""
    return f"Mill number {number} was built in 18{number:02}."


def prefixed(folder: Path) -> None:
    """Text lines of a logger, with the answers as JSON at their end."""
    row = [{"question": question(n), "contexts": passages(n), "answer": answer(n)} for n in range(NUMBER)]
    lines = [f"2026-05-01 10:00:{n:02},0 INFO [rag] {json.dumps(one)}\n" for n, one in enumerate(row)]
    (folder / "app.log").write_text("2026-05-01 09:59:59,0 INFO [rag] started\n" + "".join(lines) + TRACEBACK)


def halves(folder: Path) -> None:
    """Retrieval and answer in two files; one request failed in between, one answer was logged twice."""
    retrieved = [
        {"rid": n, "request_id": f"r{n}", "query": question(n), "hits": passages(n)} for n in range(NUMBER + 1)
    ]
    answered = [{"request_id": f"r{n}", "response": answer(n), "took": n} for n in reversed(range(NUMBER))]
    for name, rows in (("retrieval", retrieved), ("answers", [*answered, answered[0]])):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def streamed(folder: Path) -> None:
    """Answers that are logged word by word; the parts of two requests are mixed."""
    rows: list[list[dict[str, Any]]] = []
    for n in range(NUMBER):
        place = {"request_id": f"r{n}"}
        words = [{**place, "type": "delta", "delta": f"{word} "} for word in answer(n).split(" ")]
        search = {**place, "type": "search", "question": question(n), "contexts": passages(n)}
        rows.append([search, *words, {**place, "type": "done"}])
    pairs = zip(rows[::2], rows[1::2], strict=True)
    lines = [json.dumps(row) for one, other in pairs for pair in zip(one, other, strict=True) for row in pair]
    (folder / "app.jsonl").write_text("".join(f"{line}\n" for line in lines))


SERVICES = {
    "prefixed": Service(prefixed, ("app.log",), "app.log", {'skipped_total{reason="no_json"': 4}),
    "halves": Service(
        halves,
        ("retrieval.jsonl", "answers.jsonl"),
        "",
        {'outcome="joined"': 2 * NUMBER, 'outcome="orphaned"': 1, 'outcome="repeated"': 1},
    ),
    "streamed": Service(streamed, ("app.jsonl",), "", {'outcome="joined"': 9 * NUMBER}),
}


def ids(folder: Path) -> dict[str, Any]:
    """Contexts that are ids, in UTF-16: a source with keys that docs/logs.md names."""
    corpus = {f"d{n}-{rank}": text for n in range(NUMBER) for rank, text in enumerate(passages(n))}
    rows = [
        {"id": f"r{n}", "question": question(n), "contexts": [f"d{n}-0", f"d{n}-1"], "answer": answer(n), "at": 0}
        for n in range(NUMBER)
    ]
    (folder / "corpus.csv").write_text("id,text\n" + "".join(f"{name},{text}\n" for name, text in corpus.items()))
    (folder / "app.log").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-16")
    return {"path": f"{folder}/app.log", "encoding": "utf-16", "resolve": {"file": f"{folder}/corpus.csv"}}


def mapped(folder: Path, service: Service) -> dict[str, Any]:
    """The source that `init --print` proposes for the log of a service."""
    service.write(folder)
    printed = run_forked("init", "--print", *(folder / file for file in service.files))
    source: dict[str, Any] = yaml.safe_load(printed.stdout)
    return source if "kind" in source else {**source, "path": str(folder / service.path)}


@pytest.mark.costly
@pytest.mark.parametrize("name", [*SERVICES, "ids"])
def test_from_init_or_keys_to_figures(tmp_path: Path, name: str) -> None:
    """What `init` prints is a source; `check` finds it good; `run` judges every answer and counts every other line."""
    folder = tmp_path / "log"
    folder.mkdir()
    service = SERVICES.get(name)
    source = {"kind": "tail", "name": "app"} | (ids(folder) if service is None else mapped(folder, service))
    config = written(tmp_path, source)
    checked = run_forked("check", "--config", config)
    assert (checked.returncode, "samples" in checked.stdout) == (0, True), checked.stdout
    done = run_forked("run", "--once", "--config", config)
    assert done.returncode == 0, done.stderr
    others = {} if service is None else service.others
    expected = {
        "ragwatch_requests_seen_total{": NUMBER,
        "ragwatch_requests_rejected_total{": 0,
        "ragwatch_samples_judged_total{": NUMBER,
        "ragwatch_source_lines_skipped_total{": sum(count for part, count in others.items() if "skipped" in part),
        "ragwatch_traffic_contexts_sum{": 2 * NUMBER,
        'ragwatch_record_fields_lost_total{field="at",reason="implausible_time"': NUMBER if name == "ids" else 0,
        **others,
    }
    assert {part: value(done.stdout, part) for part in expected} == expected
    means = re.findall(r'^ragwatch_faithfulness_ratio\{.*window="1d"\} (\S+)$', done.stdout, flags=re.MULTILINE)
    assert means
    assert all(float(mean) > 0.95 for mean in means)


def written(folder: Path, source: dict[str, Any]) -> Path:
    """A configuration with one source."""
    config = folder / "ragwatch.yaml"
    sections = {"state": f"{folder}/state", "sampling": {"probability": 1.0}, "sources": [source]}
    config.write_text(yaml.safe_dump(sections))
    return config


@pytest.mark.costly
def test_pieces_without_concat_fail(tmp_path: Path) -> None:
    """Neither command is content where a piece would be the answer: both name the key."""
    streamed(tmp_path)
    mapping = {"question": "question", "contexts": "contexts", "answer": "delta"}
    of = [{"kind": "tail", "name": "parts", "path": f"{tmp_path}/app.jsonl"}]
    source = {"kind": "join", "name": "app", "by": "request_id", "of": of, "format": "custom", "mapping": mapping}
    config = written(tmp_path, source)
    checked = run_forked("check", "--config", config)
    done = run_forked("run", "--once", "--config", config)
    assert (checked.returncode, done.returncode) == (1, 1)
    assert "concat:" in checked.stdout
    assert "concat: {answer:" in done.stderr


def value(text: str, part: str) -> float:
    """Sum of the series whose line contains a text."""
    lines = [line for line in text.splitlines() if part in line and not line.startswith("#")]
    return sum(float(line.rpartition(" ")[2]) for line in lines)
