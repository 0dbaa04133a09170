"""Exported traces: what their rows say goes through the assembler of OTLP, whatever the columns are called."""

from __future__ import annotations

from typing import Any

import pytest

from ragwatch.core.sample import Context
from ragwatch.errors import FormatError
from ragwatch.formats import build


def run(name: str, parent: str | None, kind: str, output: object, start: object = 0) -> dict[str, Any]:
    """A run of LangSmith."""
    return {
        "id": name,
        "parent_run_id": parent,
        "run_type": kind,
        "inputs": {"input": "q"},
        "outputs": output,
        "start_time": start,
    }


def texts(*runs: dict[str, Any]) -> list[str]:
    """The contexts of a joined export."""
    sample = build("langsmith").read({"id": "t", "run_type": "chain", "parts": list(runs)}, "x")
    assert (sample.question, sample.answer) == ("q", "a")
    return [context.text for context in sample.contexts]


def test_contexts_of_several_retrievers() -> None:
    """Outermost retrievers in the order of their start, each passage once; a row that calls itself does no harm."""
    runs = [
        run("root", None, "chain", {"answer": "a"}, 1777629600),
        run("second", "root", "retriever", {"documents": ["c", "b"]}, 1777629603),
        run("first", "root", "retriever", ["a", "b"], 1777629601),
        run("inner", "middle", "retriever", ["z"], 1777629602),
        run("middle", "first", "chain", "x", 1777629602),
        run("loop", "loop", "tool", None, 1777629609),
    ]
    assert texts(*runs) == ["a", "b", "c"]
    assert texts(*reversed(runs)) == ["a", "b", "c"]


def test_dates_of_documents() -> None:
    """From the metadata of a retriever's documents, and of contexts that a row holds."""
    document = {"page_content": "Tea is green.", "metadata": {"last_modified": "2026-05-01", "version": "7"}}
    runs = [run("root", None, "chain", {"answer": "a"}), run("r", "root", "retriever", {"documents": [document]})]
    traced = build("langsmith").read({"id": "t", "run_type": "chain", "parts": runs}, "x")
    mapping = {"contexts": "documents(docs)", "answer": "a"}
    mapped = build("custom", mapping).read({"docs": [document], "a": "b"}, "x")
    assert [one.contexts[0].updated_at for one in (traced, mapped)] == [1777593600.0] * 2


@pytest.mark.parametrize(
    "starts",
    [
        ("2026-05-01T10:00:01Z", "2026-05-01T10:00:01.5Z"),
        ("2026-05-01 10:00:01.000000", 1777629602),
        (1777629601000, "1777629602000"),
    ],
)
def test_starts_are_times(starts: tuple[object, object]) -> None:
    """Times are compared as such, however they are written."""
    root = run("root", None, "chain", {"answer": "a"}, 1777629600)
    first, second = (
        run(name, "root", "retriever", [text], start) for name, text, start in zip("zy", "cd", starts, strict=True)
    )
    assert texts(second, root, first) == ["c", "d"]


def test_rows_of_one_time_are_in_any_order() -> None:
    """Exports with whole seconds: a retrieval that the rows name behind the answer has still come before it."""
    at = "2026-05-01T10:00:00Z"
    rows = [
        run("root", None, "chain", {"output": "a"}, at),
        run("model", "root", "llm", {"generations": [[{"text": "a"}]]}, at),
        run("search", "root", "retriever", {"documents": [{"pageContent": "c", "metadata": {"score": 1}}]}, at),
    ]
    assert texts(*rows) == ["c"]


def test_several_requests_in_one_trace_are_refused() -> None:
    """A job that answers several questions is not one sample."""
    parts = [run("job", None, "tool", None)]
    for name in "ab":
        parts += [
            run(f"{name}0", "job", "chain", {"answer": "a"}),
            run(f"{name}1", f"{name}0", "retriever", [name]),
            run(f"{name}2", f"{name}0", "llm", {"generations": [[{"text": "a"}]]}),
        ]
    with pytest.raises(FormatError, match="2 requests in one trace"):
        build("langsmith").read({"id": "t", "run_type": "chain", "parts": parts}, "x")


def test_azure_passages_have_the_name_of_their_file() -> None:
    """The number of a chunk counts within its file only; text citations are read too."""
    citations: list[Any] = [{"content": "c", "filepath": "a.md", "chunk_id": "0"}, "plain"]
    message = {"content": "a", "context": {"citations": citations}}
    record = {"messages": [{"role": "user", "content": "q"}], "choices": [{"message": message}]}
    assert build("auto").read(record, "x").contexts == (Context("c", "a.md#0"), Context("plain"))
