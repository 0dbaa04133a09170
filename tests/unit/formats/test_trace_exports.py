"""Exported traces, and logs as services write them (tests/data/outside): read rightly, or refused with a reason."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from ragwatch.errors import FormatError
from ragwatch.formats import build
from ragwatch.formats.traces.assemble import assemble
from ragwatch.model.sample import Context, Sample
from ragwatch.sources.join.merge import RecordPart, merged
from ragwatch.sources.otlp import json_request


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


LOGS = Path(__file__).parents[2] / "data" / "outside" / "logs"
QUESTION, ANSWER = "How long is the kettle warranty?", "The kettle is covered for two years."
TEXTS = ["The kettle warranty lasts two years from purchase.", "Warranty claims need the receipt of the kettle."]


def is_first(sample: Sample, *, question: bool = True) -> bool:
    """Whether a sample is the first answer of every log, with all of its passages and nothing else."""
    texts = [context.text for context in sample.contexts]
    asked = sample.question == QUESTION if question else sample.question is None
    return asked and sample.answer.startswith(ANSWER) and texts == TEXTS


@pytest.mark.parametrize(
    ("name", "by"),
    [("phoenix_dataframe_rows", "context.trace_id"), ("langfuse_js_rows", "traceId"), ("langsmith_rows", "trace_id")],
)
def test_rows_of_a_trace_are_joined(name: str, by: str) -> None:
    """An export with a row for each span goes through the assembler, in whatever order its rows are."""
    groups: dict[str, list[RecordPart]] = defaultdict(list)
    for line in (LOGS / f"{name}.jsonl").read_bytes().splitlines():
        groups[json.loads(line)[by]].append(RecordPart(0, line))
    some = [build("auto").read(merged(parts, group), "x") for group, parts in groups.items()]
    assert is_first(some[0])
    assert [sample.id for sample in some] == list(groups)
    for row in groups[some[0].id]:  # a model's call alone holds an answer and a prompt, and is no whole trace
        with pytest.raises(FormatError, match="join the rows"):
            build("auto").read(json.loads(row.text), "x")


def test_an_answer_beside_the_output_of_its_tool() -> None:
    """LibreChat: the answer is the text of the message, and the row of the user is no record of an answer."""
    lines = (LOGS / "librechat_messages.jsonl").read_text(encoding="utf-8").splitlines()
    assert is_first(build("auto").read(json.loads(lines[1]), "x"), question=False)
    with pytest.raises(FormatError, match="unknown format"):
        build("auto").read(json.loads(lines[0]), "x")


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("bedrock_rag", "bedrock.retrieve_and_generate"),
        ("genai_retrieval_content", "retrieval manuals"),
        ("langfuse", "search"),
        ("langsmith", "VectorStoreRetriever"),
        ("vectordb_chat", None),
        ("vercel_getinformation", "getInformation"),
    ],
)
def test_a_trace_is_assembled(name: str, step: str | None) -> None:
    """One record, whose contexts name the step that has retrieved them."""
    sent = (LOGS / f"otlp_{name}.json").read_bytes().replace(b"NOW", b"1777885800000000000")
    result = assemble(json_request.spans_of(sent).spans)
    (record,) = result.records
    assert (record["question"], record["answer"]) == (QUESTION, ANSWER)
    contexts: Any = record["contexts"]
    assert [context["text"] for context in contexts] == TEXTS
    assert {context.get("step") for context in contexts} == {step}
