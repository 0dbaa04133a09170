"""Passages inside one text: cut at the marks of a prompt, in order, without its instructions and its question."""

import time
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.errors import ConfigError, FormatError
from ragwatch.formats.log_reader import LogReader, RecordRules
from ragwatch.formats.split import KINDS, Splitter
from ragwatch.model.sample import Context, RejectReason

TEA, MILK = "Tea is green.\nIt grows in Assam.", "Milk is white."
ASKED = "Which drinks are green?"
BEFORE = "You are a helpful assistant.\nAnswer only from the context below.\n\n"
NUMBERED = [
    "[1] {}\n[2] {}",
    "[1]: {}\n\n[2]: {}",
    "1. {}\n2. {}",
    "1) {}\n\n2) {}",
    "(1) {}\n(2) {}",
    "Document 1: {}\n\nDocument 2: {}",
    "Document [1] {}\nDocument [2] {}",
    "[Source 0]\n{}\n\n[Source 1]\n{}",
    "--- Passage #1 ---\n{}\n--- Passage #2 ---\n{}",
    "**Context 1**\n{}\n\n**Context 2**\n{}",
    "## Chunk 1\n{}\n## Chunk 2\n{}",
]
XML = (
    "<document>{}</document>\n<document>{}</document>",
    (
        '<documents>\n<document index="1">\n<source>a.md</source>\n<document_content>\n{}\n</document_content>\n'
        '</document>\n<document index="2">\n<document_content>\n{}\n</document_content>\n</document>\n</documents>'
    ),
    "<context>\n<passage id='7'>{}</passage>\n<passage id='9'>{}</passage>\n</context>",
    (
        "<search_results><result><title>Tea</title><content>{}</content></result><result><content>{}</content></result>"
        "</search_results>"
    ),
)
MARKED = [
    *(("markdown", block) for block in ("```\n{}\n```\n\n```text\n{}\n```", "{}\n\n---\n\n{}", "- {}\n- {}")),
    ("markdown", '"""\n{}\n"""\n"""\n{}\n"""'),
    ("paragraphs", "{}\n\n{}"),
]
AFTER = [
    "",
    f"\n\nQuestion: {ASKED}",
    f"\n\nQuestion: {ASKED}\n\nHelpful Answer:",
    f"\n\n## User question\n{ASKED}\n",
    f"\n---\nUser: {ASKED}\nAssistant:",
    f"\n\n{ASKED}",
]


@pytest.mark.parametrize(
    ("kind", "block"), [*(("numbered", block) for block in NUMBERED), *(("xml", block) for block in XML)]
)
def test_passages_are_cut_out_of_a_prompt(kind: str, block: str) -> None:
    """Each spelling of numbers and elements, whatever the prompt says before and behind it; `auto` finds the kind."""
    for after, asked in product(AFTER, (ASKED, None)):
        if asked is None and after.endswith(f"\n\n{ASKED}") and kind == "numbered":
            continue  # nothing tells this question from the passage above it
        prompt = BEFORE + block.format(TEA, MILK) + after
        for splitter in (Splitter(kind), Splitter("auto")):
            assert splitter.passages(prompt, asked) == [TEA, MILK], (splitter, after, asked)


@pytest.mark.parametrize(
    ("text", "passages"),
    [
        ("<source>a.md</source><content>Tea</content><content>Milk</content>", ["Tea", "Milk"]),
        ("<doc>Tea <doc>inside</doc></doc></doc>", ["Tea <doc>inside</doc>"]),
        ("<DOC id='1'>Tea</DOC>", ["Tea"]),
        ("<doc>never closed", None),
        ("<content>Tea</content><doc>Milk</doc>", ["Milk"]),
    ],
)
def test_odd_elements(text: str, passages: list[str] | None) -> None:
    """Sources beside contents, nested and unclosed elements, contents outside of a document."""
    assert Splitter("xml").passages(text) == passages


@pytest.mark.parametrize(("kind", "block"), MARKED)
def test_passages_between_two_marks(kind: str, block: str) -> None:
    """Fences, rules, items and paragraphs; `after` and `before` say where they stand."""
    prompt = f"{BEFORE}Context:\n{block.format(TEA, MILK)}\nQuestion: {ASKED}\nAnswer:"
    splitter = Splitter(kind, "Context:", "Question:")
    assert splitter.passages(prompt) == [TEA, MILK]
    assert splitter.question(prompt) == ASKED


def test_headings() -> None:
    """The level that occurs most; deeper headings belong to the passage, others end it."""
    prompt = f"# Context\nintro\n## Tea\n{TEA}\n### Where\nAssam\n## Milk\n{MILK}\n# Question\n{ASKED}\n"
    assert Splitter("headings").passages(prompt) == [f"## Tea\n{TEA}\n### Where\nAssam", f"## Milk\n{MILK}"]
    assert Splitter("headings").passages(f"**Tea**\n{TEA}\n\n**Milk**:\n{MILK}") == [
        f"**Tea**\n{TEA}",
        f"**Milk**:\n{MILK}",
    ]


def test_a_list_inside_a_passage_belongs_to_it() -> None:
    """Markers of another style and numbers out of order are text."""
    steps = "Brew:\n1. Boil.\n2. Pour.\n[7] Wait."
    assert Splitter("numbered").passages(f"[1] {steps}\n[2] {MILK}") == [steps, MILK]


def test_a_question_in_a_document_ends_nothing() -> None:
    """A collection of questions and answers: only the question that was asked, behind its label, is cut off."""
    faq = f"Question: Is milk white?\n\nAnswer: Yes.\n{ASKED}"
    assert Splitter("numbered").passages(f"[1] {TEA}\n[2] {faq}\nmore", ASKED) == [TEA, f"{faq}\nmore"]
    assert Splitter("numbered").passages(f"[1] {faq}\n\nQuestion: {ASKED}", ASKED) == [faq]


@pytest.mark.parametrize("said", ["", "\n", "None", "(no results found)", "No relevant documents were retrieved."])
def test_an_empty_retrieval_has_no_passages(said: str) -> None:
    """Between its two marks the prompt says that nothing was retrieved."""
    prompt = f"Context:\n{said}\nQuestion: {ASKED}"
    assert Splitter("numbered", "Context:", "Question:").passages(prompt) == []
    assert Splitter("xml").passages(f"<context>{said[:1].strip()}</context>") == ([said[:1]] if said.strip() else [])


@pytest.mark.parametrize(
    "splitter", [Splitter("numbered"), Splitter("numbered", "Kontext:"), Splitter("xml"), Splitter()]
)
def test_text_without_marks_is_not_cut(splitter: Splitter) -> None:
    """A whole prompt would count as support for the answer."""
    assert splitter.passages("You are a helpful assistant.") is None


def read(record: dict[str, Any], **rules: Any) -> Any:
    """A sample that is read with `split`."""
    return LogReader(RecordRules(**rules)).read(record, "x")


def test_a_prompt_gives_question_and_contexts() -> None:
    """Where only the prompt is logged, the question is what it asks behind the passages."""
    prompt = f"{BEFORE}Context:\n[1] {TEA}\n[2] {MILK}\n\nQuestion: {ASKED}\nAnswer:"
    split = {"by": "numbered", "after": "Context:", "before": "Question:"}
    for mapping in (
        {"contexts": "prompt", "answer": "out"},
        {"contexts": "[prompt]", "answer": "out", "question": "prompt"},
    ):
        sample = read({"prompt": prompt, "out": "Tea."}, format="custom", mapping=mapping, split=split)
        assert (sample.question, sample.contexts) == (ASKED, (Context(TEA), Context(MILK)))


def test_any_format_can_be_split() -> None:
    """The system message of a chat, and a single text as `contexts`."""
    prompt = f"{BEFORE}<doc>{TEA}</doc>\n<doc>{MILK}</doc>"
    chat = {
        "messages": [{"role": "system", "content": prompt}, {"role": "user", "content": ASKED}],
        "choices": [{"message": {"content": "Tea."}}],
    }
    for record in (chat, {"question": ASKED, "contexts": prompt, "answer": "Tea."}):
        assert read(record, split="xml").contexts == (Context(TEA), Context(MILK))
    assert read({"question": ASKED, "contexts": [], "answer": "Tea."}, split="xml").contexts == ()


def test_a_prompt_that_cannot_be_cut_is_rejected() -> None:
    """It is counted as a record without contexts, not read as one context that supports whatever it says."""
    with pytest.raises(FormatError) as caught:
        read({"question": ASKED, "contexts": "Be brief.", "answer": "Tea."}, split="numbered")
    assert (caught.value.reason, caught.value.field) == (RejectReason.MISSING_FIELD, "contexts")


@pytest.mark.parametrize("option", ["sentences", {"by": "xml", "until": "x"}])
def test_an_unknown_kind_is_refused(option: Any) -> None:
    """The configuration names the kinds there are."""
    with pytest.raises(ConfigError, match="use "):
        LogReader(RecordRules(split=option))


_MARKS = (
    *("[1] ", "[2]", "\n", "1.", "Document 1:", "<doc>", "</doc>", "<text>", "# ", "```", "---", "Question:", "a "),
    "**b**",
)


@given(
    st.lists(st.sampled_from(_MARKS), max_size=30).map("".join),
    st.sampled_from(KINDS),
    st.sampled_from([None, "Question: a"]),
)
def test_passages_are_parts_of_the_text(text: str, kind: str, question: str | None) -> None:
    """Whatever the text: passages stand in it, in order, and none is blank."""
    position = 0
    for passage in Splitter(kind).passages(text, question) or ():
        assert passage.strip() == passage != ""
        position = text.index(passage, position)


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_texts_take_linear_time(kind: str) -> None:
    """A long run of any mark is cut in a small part of a second."""
    for part in (
        "<doc>",
        "[1] ",
        "\n \n",
        "\n#",
        "```\n",
        "-" * 3 + " ",
        "\nQuestion: ",
        "\n**",
        "\n# a",
        "\n\nuse answer",
    ):
        text = part * (60_000 // len(part)) + "x"
        start = time.process_time()
        Splitter(kind).passages(text, "a" * 20)
        assert time.process_time() - start < 0.5, part
