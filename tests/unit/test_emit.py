"""The helper that a service uses to log answers: nothing blocks or raises in the service, and every loss is counted."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.answering import Reply, answering
from support.draws import draws
from support.kit import AT
from support.patience import DEADLINE

from ragwatch.emit import AnswerHandler, AnswerLog, _close_all, _encoded, _File, _logs
from ragwatch.formats import canonical
from ragwatch.formats.record import parse

pytestmark = pytest.mark.servers

JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text() | st.integers(),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.text(max_size=5), parts, max_size=3),
    max_leaves=8,
)


@pytest.fixture(autouse=True)
def nothing_waits() -> Iterator[None]:
    """The threads of a test's logs write no more in the next one, which may replace `os.write`."""
    yield
    for log in list(_logs):
        with log._lock:
            log._lines.clear()


def lines(path: Path) -> list[dict[str, Any]]:
    """The records of a log."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_a_logged_answer_is_read_as_the_same_sample(tmp_path: Path) -> None:
    """What `answer` writes is a record of the format canonical, field by field."""
    log = AnswerLog(tmp_path / "answers.jsonl")
    name = log.answer("why?", ["because", {"text": "so", "id": "d1", "score": 0.5}], "yes\n", route="r", at=AT)
    assert log.flush(DEADLINE)
    record, repaired = parse((tmp_path / "answers.jsonl").read_bytes().rstrip(b"\n"))
    sample = canonical.read(record, "fallback")
    assert not repaired
    assert (sample.id, sample.question, sample.answer, sample.route, sample.at) == (name, "why?", "yes\n", "r", AT)
    assert [(context.text, context.id, context.score) for context in sample.contexts] == [
        ("because", None, None),
        ("so", "d1", 0.5),
    ]


@settings(max_examples=draws(30), deadline=None)
@given(JSON, st.text())
def test_any_value_becomes_one_line(value: object, text: str) -> None:
    """Whatever the metadata of a service holds, exactly one line is written, and it is JSON without NaN."""
    line = _encoded({"question": text, "metadata": {"value": value}})
    assert line.count(b"\n") == 1
    parse(line.rstrip(b"\n"))


class Document:
    """A document of a framework."""

    page_content = "Cats purr."
    id = 7
    metadata = MappingProxyType({"updated_at": "2026-05-01", "page": 3})


class Number:
    """A number of a numeric library."""

    def item(self) -> float:
        """The number as Python has it."""
        return 0.25


def test_values_of_libraries_are_written_as_plain_ones(tmp_path: Path) -> None:
    """Documents, scalars, sets and NaN do not make an answer unreadable."""
    log = AnswerLog(tmp_path / "answers.jsonl")
    node = type("WithScore", (), {"node": Document()})()
    log.answer("q", [Document(), node, {"text": "b", "score": float("nan")}], "a", metadata={"n": Number(), "s": {1}})
    assert log.flush(DEADLINE)
    (record,) = lines(tmp_path / "answers.jsonl")
    assert (
        record["contexts"][0] == record["contexts"][1] == {"text": "Cats purr.", "id": "7", "updated_at": "2026-05-01"}
    )
    assert record["contexts"][2] == {"text": "b", "score": None}
    assert record["metadata"] == {"n": 0.25, "s": [1]}


class Hostile:
    """Raises wherever it is looked at."""

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(name)

    def __str__(self) -> str:
        raise RuntimeError


def test_nothing_is_raised_in_the_service(tmp_path: Path) -> None:
    """Values that cannot be encoded are counted as failed, never raised."""
    log = AnswerLog(tmp_path / "answers.jsonl")
    circle: list[object] = []
    circle.append(circle)
    log.answer("q", [Hostile()], "a")
    log.answer("q", [], "a", metadata={"value": Hostile()})
    log.answer("q", [], "a", metadata={"value": circle})
    assert log.failed == 3
    assert log.flush(DEADLINE)
    assert not (tmp_path / "answers.jsonl").exists()


def test_what_cannot_be_written_is_dropped_and_counted(tmp_path: Path) -> None:
    """A target that cannot be written neither blocks nor grows the queue; each line is written or counted."""
    log = AnswerLog(tmp_path / "missing" / "answers.jsonl", max_lines=10)
    for _ in range(25):
        log.answer("q", [], "a")
    assert log.dropped == 15
    assert not log.flush(0.0)
    (tmp_path / "missing").mkdir()
    assert log.flush(DEADLINE)
    assert len(lines(tmp_path / "missing" / "answers.jsonl")) == 10
    small = AnswerLog(tmp_path / "small.jsonl", max_bytes=50)
    small.answer("q", [], "a" * 100)
    assert small.dropped == 1


def test_threads_do_not_mix_lines(tmp_path: Path) -> None:
    """Lines of many threads are all there, each whole; after a rename, lines go to a new file."""
    log = AnswerLog(tmp_path / "answers.jsonl")
    threads = [
        threading.Thread(target=lambda name=name: [log.answer(f"{name}", ["x" * 2000], "a") for _ in range(50)])
        for name in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert log.flush(DEADLINE)
    assert len(lines(tmp_path / "answers.jsonl")) == 200
    (tmp_path / "answers.jsonl").rename(tmp_path / "answers.jsonl.1")
    log.answer("2", [], "a")
    assert log.flush(DEADLINE)
    assert [record["question"] for record in lines(tmp_path / "answers.jsonl")] == ["2"]


def test_a_forked_child_writes_its_own_lines_once(tmp_path: Path) -> None:
    """Parent and child write each line once, although the thread of the parent does not exist in the child."""
    path = tmp_path / "answers.jsonl"
    log = AnswerLog(path)
    log.answer("parent", [], "a")
    child = os.fork()
    if child == 0:
        log.answer("child", [], "a")
        os._exit(0 if log.flush(DEADLINE) else 1)
    assert os.waitpid(child, 0)[1] == 0
    log.answer("parent again", [], "a")
    assert log.flush(DEADLINE)
    assert sorted(record["question"] for record in lines(path)) == ["child", "parent", "parent again"]


def test_a_signal_handler_may_log(tmp_path: Path) -> None:
    """A handler that logs while the interrupted code holds the lock of the log does not hang."""
    log = AnswerLog(tmp_path / "answers.jsonl")
    old = signal.signal(signal.SIGUSR1, lambda *_: log.feedback("x", "up"))
    try:
        with log._lock:
            os.kill(os.getpid(), signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, old)
    assert log.flush(DEADLINE)
    assert lines(tmp_path / "answers.jsonl")[0]["feedback_for"] == "x"


def test_the_handler_logs_only_answers(tmp_path: Path) -> None:
    """Log calls without `extra={"rag": ...}` write nothing."""
    handler = AnswerHandler(tmp_path / "answers.jsonl")
    logger = logging.getLogger("test_emit")
    logger.propagate = False
    logger.addHandler(handler)
    logger.error("something else")
    logger.error("answered", extra={"rag": {"question": "q", "contexts": [], "answer": "a"}})
    assert handler.log.flush(DEADLINE)
    (record,) = lines(tmp_path / "answers.jsonl")
    assert record["question"] == "q"
    assert record["id"]


def test_waiting_lines_are_written_at_exit_and_nothing_else_is_imported(tmp_path: Path) -> None:
    """A process that ends right after an answer has logged it; the helper needs the standard library only."""
    path = tmp_path / "answers.jsonl"
    program = (
        "import sys; from ragwatch.emit import AnswerLog\n"
        f"AnswerLog({str(path)!r}).answer('q', [], 'a')\n"
        "others = {name.split('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)\n"
        "print(sorted(name for name in others if name in ('pydantic', 'starlette', 'orjson', 'click')))\n"
        "print(sorted(name for name in sys.modules if name.startswith('ragwatch')))\n"
    )
    ended = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines() == ["[]", "['ragwatch', 'ragwatch.emit']"]
    assert len(lines(path)) == 1


def test_a_full_disk_loses_no_line_and_doubles_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that is cut off is counted, and the next begins on a line of its own; one that does not fit waits."""
    path = tmp_path / "answers.jsonl"
    batch = [_encoded({"question": str(place), "answer": "a" * 50}) for place in range(4)]
    file, write = _File(str(path)), os.write
    sizes = iter([1000, 30, 1000, None, 1000, 1000])

    def short_write(descriptor: int, line: bytes) -> int:
        size = next(sizes)
        if size is None:
            raise OSError(28, "No space left on device")
        return write(descriptor, line[:size])

    monkeypatch.setattr("ragwatch.emit.os.write", short_write)
    assert file.write(batch) == (2, 1)
    assert file.write(batch[2:]) == (1, 0)
    assert file.write(batch[3:]) == (1, 0)
    questions = []
    for line in path.read_text().splitlines():
        with suppress(ValueError):
            questions.append(json.loads(line)["question"])
    assert questions == ["0", "2", "3"]


def test_a_process_that_cannot_start_threads_writes_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """At the end of the interpreter no thread starts: what waits is written by the exit handler."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    log, stuck = AnswerLog(tmp_path / "answers.jsonl"), AnswerLog(tmp_path / "no" / "answers.jsonl")
    for one in (log, stuck):
        one.answer("q", ["x" * 2_000_000], "a")
        one.answer("q", [], "a")
    monkeypatch.setattr("ragwatch.emit.EXIT_SECONDS", 0.5)
    _close_all()
    assert len(lines(tmp_path / "answers.jsonl")) == 2
    assert "cannot write to" in caplog.text
    assert not stuck.flush(0.0)


def test_a_fault_of_the_target_ends_no_thread(tmp_path: Path) -> None:
    """Whatever goes wrong while writing is counted, and the next lines are tried."""
    log = AnswerLog(tmp_path / "answers.jsonl")

    class Faulty:
        def write(self, _: object) -> tuple[int, int]:
            raise ValueError("a fault")

    target, log._target = log._target, Faulty()
    log.answer("q", [], "a")
    assert log.flush(DEADLINE)
    log._target = target
    log.answer("q", [], "a")
    assert log.flush(DEADLINE)
    assert (log.failed, len(lines(tmp_path / "answers.jsonl"))) == (1, 1)


ACCEPTED: Reply = (202, {}, {})


@pytest.mark.parametrize(
    ("replies", "failed"),
    [
        ([ACCEPTED], 0),
        ([(429, {}, {"Retry-After": "0.1"}), (503, {}, {"Retry-After": "soon"}), ACCEPTED], 0),
        ([(401, {}, {})], 1),
        ([(307, {}, {"Location": "/elsewhere"})], 1),
        ([(202, {"rejected": 1}, {})], 1),
        ([(202, b"not JSON", {})], 0),
    ],
)
def test_answers_are_sent_until_they_are_taken_or_refused(replies: list[Reply], failed: int) -> None:
    """With the token, the same line again while the receiver is overloaded; what is refused for good is counted."""
    left = iter(replies)
    with answering(lambda _: next(left)) as (url, asked):
        log = AnswerLog(f"{url}/v1/samples", token="s3cret")  # noqa: S106 - a made up one
        log.answer("q", [], "a", id="r1")
        assert log.flush(DEADLINE)
        log.flush(0.0)
    kinds = [(one.headers["Authorization"], one.headers["Content-Type"], one.body["id"]) for one in asked]
    assert kinds == [("Bearer s3cret", "application/x-ndjson", "r1")] * len(replies)
    assert all(one.body == asked[0].body for one in asked)
    assert (log.failed, log.dropped) == (failed, 0)
