"""Every known shape: each file of tests/data/formats holds the same answered question in one library's spellings.

Any JSON value may stand anywhere in a record: it is read, or refused with a reason, and never stops its source.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import pytest
from support.draws import EXAMPLES, USUAL
from support.logged import AT, GREETING, NAMED, PLAIN, SAMPLE, records

from ragwatch.errors import FormatError
from ragwatch.formats import FORMATS, build
from ragwatch.model.sample import Context, RejectReason, Sample
from ragwatch.redaction.redactor import Redactor

# What differs from SAMPLE, line by line.
EXPECTED: dict[str, list[dict[str, Any]]] = {
    "canonical": [
        {
            "id": "r1",
            "at": AT,
            "route": "search",
            "metadata": {"tenant": "north", "trace_id": "4bf92f3577b34da6"},
            "reference": "Ten years.",
        },
        {"id": "r1", "at": AT},
        {"id": "r1", "at": AT},
    ],
    "ragas": [{"contexts": NAMED, "reference": "Ten years."}, {"id": "r1", "contexts": PLAIN, "history": GREETING}],
    "deepeval": [{"contexts": PLAIN, "reference": "Ten years."}] * 2,
    "langchain": [{}, {"id": "r1"}, {}, {"id": "r1"}, {}, {}],
    "langserve": [
        {"id": "r1", "metadata": {"run_id": "r1"}},
        {"id": "r1", "contexts": NAMED, "metadata": {"run_id": "r1", "feedback_tokens": []}},
    ],
    "langsmith": [{"id": "r1", "at": AT, "contexts": NAMED}] * 2 + [{"id": "t1", "at": AT, "contexts": NAMED}],
    "langfuse": [{"id": "r1", "at": AT, "contexts": NAMED, "metadata": {"tenant": "north"}}]
    + [{"id": "r1", "at": AT, "contexts": NAMED}] * 2,
    "phoenix": [{"id": "r1", "at": AT}] * 2,
    "mlflow": [{"id": "r1", "at": AT}] * 2,
    "bedrock": [{"contexts": NAMED}, {"id": "r1", "contexts": NAMED}, {}],
    "vertex": [{"id": "r1", "contexts": NAMED}, {"contexts": NAMED, "history": GREETING}, {}],
    "azure": [{}, {"id": "r1", "at": AT}],
    "file_search": [{"id": "r1", "at": AT}, {}],
    "llamaindex": [{"metadata": {"tenant": "north"}}, {}, {}, {}, {}],
    "haystack": [{}, {}, {}, {}, {}],
    "anthropic": [{"id": "r1", "at": AT, "contexts": NAMED, "history": GREETING}]
    + [{"id": "r1", "contexts": NAMED}] * 2,
    "bedrock_log": [{"id": "r1", "at": AT}, {"id": "r1", "at": AT, "contexts": PLAIN}],
    "cohere": [{"id": "r1", "contexts": NAMED, "history": GREETING}] * 2 + [{"id": "r1", "contexts": PLAIN}],
    "litellm": [{"id": "r1", "at": AT, "contexts": PLAIN, "history": GREETING, "metadata": {"trace_id": "t1"}}],
    "helicone": [{"id": "r1", "at": AT, "contexts": PLAIN}],
    "dify": [{"id": "r1", "at": AT}] * 2,
    "flowise": [{"id": "r1", "contexts": NAMED}],
    "openwebui": [{"id": "r1", "at": AT, "contexts": PLAIN}],
    "librechat": [{"id": "r1", "at": AT, "question": None}],
    "ragflow": [{"id": "r1"}],
    "trulens": [{"id": "r1", "at": AT, "contexts": PLAIN}],
    "loguru": [{"id": "r1", "at": AT, "route": "shop"}],
    "serilog": [{"id": "r1", "at": AT}],
    "logstash": [{"id": "r1", "at": AT, "metadata": {"trace_id": "r1"}}],
    "haystack_chat": [{}],
    "langgraph": [{"id": "r1", "history": GREETING}, {"id": "r1", "at": AT}],
    "openai": [{"id": "r1", "at": AT, "history": GREETING}, *[{"history": GREETING}] * 3, {"id": "r1", "at": AT}],
}


CASES = [
    pytest.param(name, record, SAMPLE._replace(**changes), id=f"{name}-{line}")
    for name in FORMATS
    for line, (record, changes) in enumerate(zip(records(name), EXPECTED[name], strict=True), start=1)
]


def without_spans(sample: Sample) -> Sample:
    """A sample without the names of spans and steps that an exported trace adds."""
    if "span_id" not in sample.metadata:
        return sample
    added = {"trace_id", "span_id", "answer_span_id", "steps"}
    metadata = {key: value for key, value in sample.metadata.items() if key not in added}
    return sample._replace(metadata=metadata, contexts=tuple(one._replace(step=None) for one in sample.contexts))


@pytest.mark.parametrize(("name", "record", "expected"), CASES)
def test_reads(name: str, record: dict[str, Any], expected: Sample) -> None:
    """Completely, by its preset, by `auto`, for which no shape before it claims the record, and by its mapping."""
    assert without_spans(build(name).read(record, "log:1")) == expected
    assert without_spans(build("auto").read(record, "log:1")) == expected
    assert next(other for other, shape in FORMATS.items() if shape.matches(record)) == name
    if name != "canonical" and FORMATS[name].MAPPING:  # spans are assembled, which no expression says
        assert build("custom", FORMATS[name].MAPPING).read(record, "log:1") == expected


MESSAGES = [{"role": "user", "content": "q"}]
SYSTEM = [{"role": "system", "content": "passage"}, *MESSAGES]
CHOICES = [{"message": {"content": "a"}}]
OUTPUT = [{"type": "message", "content": [{"type": "output_text", "text": "a"}]}]


RETRIEVER = {"type": "RETRIEVER", "id": "o", "output": {"documents": [{"id": "d1"}]}}
CUT = {"type": "RETRIEVER", "id": "o", "output": '[{"page_content": "The war'}
GEMINI = {"content": {"parts": [{"text": "a"}]}}
FROM_THE_WEB = {**GEMINI, "groundingMetadata": {"groundingChunks": [{"web": {"uri": "u"}}]}}
UNREADABLE = [{"message": {"content": "a", "context": {"citations": 3}}}]
INSTRUCTIONS = (
    "You are a helpful assistant.",
    "You are HelpBot, the assistant of ACME. Answer briefly.\n- Be polite.\n\nToday is Monday.",
)
NO_CONTEXTS: list[tuple[str, dict[str, Any]]] = [
    ("ragas", {"user_input": "q", "response": "a"}),
    ("auto", {"user_input": "q", "response": "a", "retrieved_contexts": None}),
    ("deepeval", {"input": "q", "actual_output": "a", "retrieval_context": None}),
    ("langchain", {"input": "q", "output": "a"}),
    ("langchain", {"input": "q", "output": {"context": 3, "answer": "a"}}),
    ("langchain", {"query": "q", "result": "a", "source_documents": [3]}),
    ("llamaindex", {"query": "q", "response": "a", "source_nodes": {}}),
    ("haystack", {"b": {"answers": [{"data": "a"}]}}),
    ("langfuse", {"observations": [{"type": "SPAN"}], "output": "a"}),
    ("bedrock", {"input": {"text": "q"}}),
    ("bedrock", {"output": {"text": "a"}}),
    ("bedrock", {"output": {"text": "a"}, "retrievalResults": [{"content": {}}]}),
    ("litellm", {"messages": MESSAGES, "response": {"choices": CHOICES}}),
    ("vertex", {"candidates": [GEMINI]}),
    ("vertex", {"candidates": [FROM_THE_WEB]}),
    ("azure", {"messages": MESSAGES, "choices": CHOICES}),
    ("azure", {"messages": MESSAGES, "choices": UNREADABLE}),
    ("openai", {"messages": MESSAGES, "choices": CHOICES}),
    *(
        ("openai", {"messages": [{"role": role, "content": text}], "choices": CHOICES})
        for role in ("system", "developer")
        for text in INSTRUCTIONS
    ),
]
NO_ANSWER: list[tuple[str, dict[str, Any]]] = [
    ("ragas", {"user_input": "q", "response": None, "retrieved_contexts": []}),
    ("langchain", {"input": "q", "output": {"context": []}}),
    ("langsmith", {"id": "r", "run_type": "chain", "inputs": {}, "child_runs": []}),
    ("langfuse", {"observations": [{"type": "SPAN"}, 3], "output": None}),
    ("bedrock", {"citations": [], "output": {}}),
    ("vertex", {"candidates": [{"content": {}}], "documents": []}),
    ("openai", {"messages": SYSTEM, "choices": [{"message": {}}]}),
    ("openai", {"documents": ["c"], "input": "q", "output": []}),
]


@pytest.mark.parametrize(
    ("name", "record", "reason", "field"),
    [
        *((name, record, "missing_field", "contexts") for name, record in NO_CONTEXTS),
        *((name, record, "missing_field", "answer") for name, record in NO_ANSWER),
        ("llamaindex", {"response": "a", "source_nodes": ["c", 3]}, "missing_field", "contexts[1].text"),
        ("dify", {"answer": "a", "retriever_resources": [{"id": "d"}]}, "missing_field", "contexts[0].text"),
        ("langsmith", {"id": "r", "run_type": "chain", "outputs": {"answer": "a"}}, "missing_field", "child_runs"),
        ("langsmith", {"parts": [3]}, "missing_field", "child_runs"),
        ("langfuse", {"id": "o", "output": "a"}, "missing_field", "observations"),
        ("mlflow", {"info": {}, "data": {"spans": []}}, "missing_field", "data.spans"),
        ("openai", {"output": [*OUTPUT, {"type": "file_search_call"}]}, "missing_field", "output[].results"),
        ("openai", {"output": [*OUTPUT, {"type": "file_search_call", "results": 3}]}, "wrong_type", "contexts[0]"),
        ("haystack", {"data": 3, "documents": ["c"]}, "wrong_type", "answer"),
        ("bedrock", {"output": {"text": 3}, "citations": []}, "wrong_type", "answer"),
        ("langfuse", {"observations": [RETRIEVER], "output": "a"}, "no_content", "contexts"),
        ("langfuse", {"observations": [CUT], "output": "a"}, "truncated", "contexts"),
    ],
)
def test_names_the_field(name: str, record: Mapping[str, Any], reason: str, field: str) -> None:
    """What is missing or wrong is named by its path in the foreign record, and counted by its reason."""
    with pytest.raises(FormatError) as caught:
        build(name).read(record, "log:1")
    assert (caught.value.reason, caught.value.field) == (RejectReason(reason), field)
    assert str(caught.value).startswith(field)


@pytest.mark.parametrize(
    ("name", "record", "texts"),
    [
        ("canonical", {"question": None, "contexts": [], "context_refs": ["1"], "docs": "d", "answer": "a"}, []),
        ("canonical", {"question": "", "context_refs": ["1"], "docs": "d", "answer": "a", "label": {}}, []),
        ("langchain", {"answer": "a", "context": "one text"}, ["one text"]),
        ("langchain", {"result": "a", "source_documents": [{"page_content": "c", "score": 1}]}, ["c"]),
        ("langchain", {"result": "a", "source_documents": ["c"]}, ["c"]),
        ("llamaindex", {"response": "a", "source_nodes": ["c"]}, ["c"]),
        ("haystack", {"data": "a", "documents": ["c"]}, ["c"]),
        ("openai", {"messages": [{"role": "system", "content": "c"}], "choices": CHOICES}, ["c"]),
        ("openai", {"messages": [{"role": "developer", "content": "[c"}], "choices": CHOICES}, ["[c"]),
        ("openai", {"messages": [], "context": "c", "choices": [{"message": {"refusal": "a"}}]}, ["c"]),
        ("openai", {"messages": None, "output": OUTPUT, "contexts": ["c"]}, ["c"]),
        ("openai", {"output": [*OUTPUT, {"type": "file_search_call", "results": ["c"]}]}, ["c"]),
    ],
)
def test_unknown_question(name: str, record: Mapping[str, Any], texts: list[str]) -> None:
    """A log that does not hold the question is read without it; passages may be bare texts."""
    sample = build(name).read(record, "log:1")
    assert (sample.id, sample.question, sample.answer) == ("log:1", None, "a")
    assert [context.text for context in sample.contexts] == texts


@pytest.mark.parametrize("more", [[], [3, {"type": "summary"}, {"type": "refusal", "refusal": None}]])
def test_a_refusal_is_an_answer(more: list[Any]) -> None:
    """Of the Responses API as of chat completions: who leaves refusals out counts too few abstentions."""
    said = {"type": "message", "content": [*more, {"type": "refusal", "refusal": "I can't help with that."}]}
    sample = build("openai").read({"input": "q", "output": [said], "contexts": ["c"]}, "log:1")
    assert sample.answer == "I can't help with that."


@pytest.mark.parametrize("asked", [{"query_str": "q", "custom_embedding_strs": None}, {"role": "user", "content": "q"}])
def test_a_question_that_is_an_object(asked: dict[str, Any]) -> None:
    """A QueryBundle of LlamaIndex, or a single message."""
    assert build("auto").read({"query": asked, "response": "a", "source_nodes": ["c"]}, "log:1").question == "q"
    if "role" in asked:
        assert build("auto").read({"input": asked, "answer": "a", "context": ["c"]}, "log:1").question == "q"


def a_tool(text: str) -> dict[str, str]:
    """What a retriever returned, as a message."""
    return {"role": "tool", "content": text}


@pytest.mark.parametrize(
    ("turn", "texts"),
    [
        ([a_tool("new")], ["new"]),
        (
            [a_tool('["new", "newer"]'), {"role": "assistant", "content": None}, a_tool("newest")],
            ["new", "newer", "newest"],
        ),
        ([a_tool("[]")], []),
        ([], ["old", "older"]),
    ],
)
def test_what_was_retrieved_for_an_earlier_question_is_left_out(turn: list[Any], texts: list[str]) -> None:
    """A conversation is logged whole; without a retrieval for this question, the answer rests on the earlier ones."""
    before = [
        *SYSTEM,
        {"role": "user", "content": "p"},
        a_tool('["old", "older"]'),
        {"role": "assistant", "content": "b"},
    ]
    record = {"messages": [*before, {"role": "user", "content": "q"}, *turn], "choices": CHOICES}
    sample = build("openai").read(record, "log:1")
    assert (sample.question, [context.text for context in sample.contexts]) == ("q", texts)


def test_ids_of_another_number_of_contexts_are_dropped() -> None:
    """A wrong name is worse than none."""
    record = {"user_input": "q", "response": "a", "retrieved_contexts": ["c"], "retrieved_context_ids": ["1", "2"]}
    assert build("ragas").read(record, "x").contexts == (Context("c"),)


@pytest.mark.parametrize(
    "record", [{}, {"answers": [3]}, {"output": [3]}, {"response": 3, "request": None}, {"x": {"answers": []}}]
)
def test_matching_never_raises(record: Mapping[str, Any]) -> None:
    """The test of any shape looks at any record without an error."""
    assert [name for name, shape in FORMATS.items() if shape.matches(record)] == []


@pytest.mark.parametrize(
    "text",
    [
        "You are a helpful assistant. Paris is the capital of France.",
        "You are a helpful assistant.\n\nParis is the capital of France.",
        "You are a helpful assistant. You can return goods within 30 days.",
        "You are a helpful assistant. Answer from this:\n<doc>Be kind.</doc>",
        "You are an assistant. Use the following pieces of context to answer.\n\nAnswer keys are kept for ten years.",
        "You are entitled to a refund within 30 days.",
        "You must be 18 to open an account.",
        "Du bist ein Assistent. Rechnungen werden zehn Jahre aufbewahrt.",
    ],
)
def test_passages_in_a_system_prompt(text: str) -> None:
    """Many services put what they retrieved there: only a prompt that does nothing but instruct is no context."""
    turns = [{"role": "system", "content": "You are a helpful assistant."}, {"role": "system", "content": text}]
    sample = build("openai").read({"messages": [*turns, *MESSAGES], "choices": CHOICES}, "log:1")
    assert [context.text for context in sample.contexts] == [text]


ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**64 - 1, 1.5, 1e308, "", "\x00", "9" * 400, "[", '{"text": []}', "[[1]]"),
    *([], {}, [[]], [{}], ["user"], [{"role": {}}], [{"type": ["user"]}]),
    *({"text": {}}, {"role": []}, {"answers": [{}]}),
    {"lc": 1, "kwargs": {}},
)
MAPPING = {
    "at": "to_number(when)",
    "contexts": "from_json(rag).hits[?sim > `0.1`].{id: key, text: snippet, score: to_number(sim)}",
    "answer": "join(' ', [reply.final, reply.final])",
    "metadata.tenant": "contains(tenant, 'n')",
}


def with_odd_values(value: Any) -> Iterator[Any]:
    """The value with one of its parts exchanged, each by each."""
    yield from ODD
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        for odd in with_odd_values(part):
            changed = value.copy()
            changed[key] = odd
            yield changed


@pytest.mark.uncounted
@pytest.mark.costly
@pytest.mark.parametrize("name", [*FORMATS, "custom"])
def test_any_value_is_read_or_refused(name: str) -> None:
    """Every part of every known record, exchanged for odd values; what is read can be redacted and stored.

    With many examples (`make slow`) each part is exchanged for each value, else every tenth of these pairs is tried.
    """
    readers = [build(name, MAPPING if name == "custom" else None), build("auto")]
    redactor = Redactor()
    for record in records(name):
        pairs = (value for value in with_odd_values(record) if isinstance(value, dict))
        for odd in islice(pairs, 0, None, 1 if EXAMPLES > USUAL else 10):
            for reader in readers:
                try:
                    sample = reader.read(odd, "log:1")
                except FormatError as error:
                    assert RejectReason(error.reason)  # noqa: PT017 - most are refused, and for a known reason
                    continue
                clean = redactor.redact_sample(sample)[0]
                assert isinstance(clean.answer, str)
                assert all(isinstance(context.text, str) for context in clean.contexts)
                json.dumps(clean.to_record(), allow_nan=False)
