"""The turns before a question, from every spelling in which services log them."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.formats import build
from ragwatch.formats.messages import MAX_CHARS, MAX_TURN_CHARS, MAX_TURNS, turns
from ragwatch.formats.record import parse
from ragwatch.model.sample import Role, Turn

ASKED, SAID = Turn(Role.USER, "How much is a ticket?"), Turn(Role.ASSISTANT, "Ten euros.")
QUESTION, ANSWER = "And for students?", "Students pay five euros."
CONTEXT = "Students pay five euros."
PLAIN = [{"role": "user", "content": ASKED.text}, {"role": "assistant", "content": SAID.text}]
NOW = {"role": "user", "content": QUESTION}
CONSTRUCTED = [
    {"lc": 1, "id": ["langchain", "schema", "HumanMessage"], "kwargs": {"content": ASKED.text}},
    {"lc": 1, "id": ["langchain", "schema", "AIMessage"], "kwargs": {"content": SAID.text, "type": "ai"}},
]

SPELLINGS: dict[str, object] = {
    "openai": PLAIN,
    "chatgpt": [{"role": "user", "content": {"content_type": "text", "parts": [ASKED.text]}}, PLAIN[1]],
    "canonical": [{"role": "user", "text": ASKED.text}, {"role": "assistant", "text": SAID.text}],
    "parts": [{"role": "user", "content": [{"type": "text", "text": ASKED.text}, {"type": "image_url"}]}, PLAIN[1]],
    "blocks": [{"role": "user", "blocks": [{"block_type": "text", "text": ASKED.text}]}, PLAIN[1]],
    "langchain": [{"type": "human", "content": ASKED.text}, {"type": "ai", "content": SAID.text}],
    "nested": [{"type": "human", "data": {"content": ASKED.text}}, {"type": "ai", "data": {"content": SAID.text}}],
    "constructed": CONSTRUCTED,
    "pairs of role and text": [["human", ASKED.text], ["ai", SAID.text]],
    "pairs of question and answer": [[ASKED.text, SAID.text]],
    "speaker": [{"speaker": "user", "text": ASKED.text}, {"speaker": "agent", "text": SAID.text}],
    "transcript": f"Human: {ASKED.text}\nAI: {SAID.text}\n",
    "with what nobody says": [
        {"role": "system", "content": "Be brief."},
        ["system", "Be brief."],
        PLAIN[0],
        {"role": "assistant", "content": None, "tool_calls": [{}]},
        {"lc": 1, "id": ["langchain", "schema", "ToolMessage"], "kwargs": {"content": "ten"}},
        {"role": "tool", "content": "ticket: 10"},
        {"role": "user", "content": "  "},
        PLAIN[1],
    ],
}


@pytest.mark.parametrize("logged", SPELLINGS.values(), ids=SPELLINGS.keys())
def test_spellings(logged: object) -> None:
    """Every spelling gives the same turns; what no user and no assistant said is no turn."""
    assert turns(logged, "history") == (ASKED, SAID)


@pytest.mark.parametrize(
    ("logged", "expected"),
    [
        (["Ten euros."], [Turn(Role.OTHER, "Ten euros.")]),
        ("Ten euros.", [Turn(Role.OTHER, "Ten euros.")]),
        ("  ", []),
        ([{"role": "narrator", "text": "Later."}, {"text": "Ten."}], [(Role.OTHER, "Later."), (Role.OTHER, "Ten.")]),
        ([], []),
    ],
)
def test_unknown_speakers_are_kept_as_such(logged: object, expected: list[Turn]) -> None:
    """Nobody is taken for the user whom the log does not call so."""
    assert list(turns(logged, "history")) == expected


@pytest.mark.parametrize("more", [[], [NOW], [NOW, {"role": "assistant", "content": f" {ANSWER}\n"}]])
def test_question_and_answer_are_no_history(more: list[dict[str, str]]) -> None:
    """A conversation that was logged after its answer ends with question and answer."""
    assert turns([*PLAIN, *more], question=QUESTION, answer=ANSWER) == (ASKED, SAID)


def test_only_the_end_is_left_out() -> None:
    """A question that was asked before stays; so does an answer that the user did not get just now."""
    again = [NOW, {"role": "assistant", "content": ANSWER}, *PLAIN]
    assert len(turns(again, question=QUESTION, answer=ANSWER)) == 4
    assert turns([*PLAIN, ["a note", ""], NOW], question=QUESTION)[-1] == Turn(Role.USER, "a note")


def test_the_last_turns_are_kept() -> None:
    """Number of turns, characters of one and characters of all are limited; the newest stay, oldest first."""
    many = turns([{"role": "user", "text": f"turn {number}"} for number in range(MAX_TURNS + 5)])
    assert [turn.text for turn in many] == [f"turn {number}" for number in range(5, MAX_TURNS + 5)]
    long = turns([{"role": "user", "text": letter * MAX_TURN_CHARS * 2} for letter in "abcdefgh"])
    assert [turn.text for turn in long] == [letter * MAX_TURN_CHARS for letter in "defgh"]
    assert sum(len(turn.text) for turn in long) == MAX_CHARS


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.sampled_from(["role", "type", "content", "text", "kwargs", "data", "id"]), inner)
        ),
        max_leaves=12,
    )
)
def test_anything_is_read_or_left_out(logged: object) -> None:
    """Without a path nothing raises, and what is returned can be stored."""
    for turn in turns(logged):
        assert isinstance(turn.role, Role)
        assert turn.text.strip()


DOCUMENT = {"page_content": CONTEXT}
CHOICE = {"message": {"content": ANSWER}}
OUT = {"context": [DOCUMENT], "answer": ANSWER}
IMAGE = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}
SPOKEN = [
    {"role": role, "parts": [{"text": text}]}
    for role, text in (("user", ASKED.text), ("model", SAID.text), ("user", QUESTION))
]
CALL = {"role": "model", "parts": [{"functionCall": {"name": "search"}}]}
RETURNED = {"role": "user", "parts": [{"functionResponse": {"name": "search", "response": {"tickets": 3}}}]}
CALLED = {"type": "function_call_output", "output": "x"}
WRITTEN = {"type": "message", "content": [{"type": "output_text", "text": ANSWER}]}
SPOKEN_ANSWER = {"content": {"parts": [{"text": ANSWER}]}}
RECORDS: list[tuple[str, dict[str, Any]]] = [
    *(
        ("canonical", {"question": QUESTION, "contexts": [CONTEXT], "answer": ANSWER, "history": history})
        for history in (PLAIN, [*PLAIN, NOW], orjson.dumps(PLAIN).decode())
    ),
    ("openai", {"messages": [*PLAIN, NOW], "documents": [CONTEXT], "choices": [{"message": {"content": ANSWER}}]}),
    ("openai", {"request": {"input": [*PLAIN, NOW, CALLED]}, "response": {"output": [WRITTEN]}, "contexts": [CONTEXT]}),
    ("langchain", {"input": QUESTION, "chat_history": PLAIN, **OUT}),
    ("langchain", {"question": QUESTION, "chat_history": CONSTRUCTED, "source_documents": [CONTEXT], "answer": ANSWER}),
    ("langchain", {"inputs": {"question": QUESTION, "chat_history": PLAIN}, "outputs": OUT}),
    ("langchain", {"input": {"input": QUESTION}, "output": {"chat_history": PLAIN} | OUT}),
    ("langchain", {"input": [*PLAIN, NOW], **OUT}),
    ("llamaindex", {"query": QUESTION, "chat_history": PLAIN, "response": ANSWER, "source_nodes": [CONTEXT]}),
    ("llamaindex", {"query": [*PLAIN, NOW], "response": {"response": ANSWER, "source_nodes": [CONTEXT]}}),
    ("ragas", {"user_input": [*PLAIN, NOW], "response": ANSWER, "retrieved_contexts": [CONTEXT]}),
    ("langchain", {"input": {"messages": [*PLAIN, NOW]}, **OUT}),
    ("llamaindex", {"query": {"messages": [*PLAIN, NOW]}, "response": ANSWER, "source_nodes": [CONTEXT]}),
    *(
        (name, record)
        for now in (
            {"type": "human", "data": {"content": QUESTION}},
            {"lc": 1, "type": "constructor", "id": ["langchain", "HumanMessage"], "kwargs": {"content": QUESTION}},
            {"role": "User", "content": QUESTION},
            ["human", QUESTION],
        )
        for name, record in (
            ("langchain", {"input": [*CONSTRUCTED, now], **OUT}),
            ("ragas", {"user_input": [*PLAIN, now], "response": ANSWER, "retrieved_contexts": [CONTEXT]}),
            ("openai", {"messages": [*PLAIN, now], "documents": [CONTEXT], "choices": [CHOICE]}),
        )
    ),
    ("openai", {"messages": [*PLAIN, NOW, IMAGE], "documents": [CONTEXT], "choices": [CHOICE]}),
    ("vertex", {"contents": [*SPOKEN, CALL, RETURNED], "documents": [CONTEXT], "candidates": [SPOKEN_ANSWER]}),
]


@pytest.mark.parametrize(("name", "record"), RECORDS)
def test_formats_fill_it(name: str, record: dict[str, Any]) -> None:
    """Every format with conversations gives the turns before the question, and the question itself."""
    sample = build(name).read(record, "log:1")
    assert (sample.question, sample.answer, sample.history) == (QUESTION, ANSWER, (ASKED, SAID))
    assert build("auto").read(record, "log:1") == sample


@pytest.mark.parametrize("expression", ["req.messages", "req.messages[:-1]", "req.messages[?role!='system']"])
def test_mapping(expression: str) -> None:
    """A mapping names the conversation, with the question or without it."""
    reader = build("custom", {"question": "q", "contexts": "c", "answer": "a", "history": expression})
    messages = [{"role": "system", "content": "Be brief."}, *PLAIN, NOW]
    record = {"q": QUESTION, "c": [CONTEXT], "a": ANSWER, "req": {"messages": messages}}
    assert reader.read(record, "log:1").history == (ASKED, SAID)
    as_text = build("custom", {"question": "q", "contexts": "c", "answer": "a", "history": "h"})
    assert as_text.read({**record, "h": orjson.dumps(messages).decode()}, "log:1").history == (ASKED, SAID)
    assert reader.read(record | {"req": None}, "log:1").history == ()


@pytest.mark.parametrize("name", ["langchain", "llamaindex"])
@pytest.mark.parametrize("odd", [3, {"messages": []}, [3, None, [1, 2, 3]]])
def test_unreadable_history_of_a_library_is_left_out(name: str, odd: object) -> None:
    """A sample is not lost because its library logs conversations in yet another way."""
    record = next(record for each, record in RECORDS if each == name and "chat_history" in record)
    assert build(name).read({**record, "chat_history": odd}, "log:1").history == ()


def test_canonical_record_round_trips() -> None:
    """What is exported is read back, roles included."""
    record = RECORDS[0][1] | {"history": [*PLAIN, {"role": "other", "text": "A note."}]}
    sample = build("canonical").read(record, "log:1")
    again, _ = parse(orjson.dumps(sample.to_record()))
    assert build("canonical").read(again, "log:2") == sample
