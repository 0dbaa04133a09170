"""What repeats over prompts: the marks between which passages stand, and the kind of their marks."""

from __future__ import annotations

from typing import Any

import pytest

from ragwatch.formats.guess_split import Prompt, guess_prompt, propose_split
from ragwatch.formats.log_reader import LogReader, RecordRules
from ragwatch.formats.split import Splitter

PASSAGES = [[f"Mill {number} stands by the river.", f"It was built in 18{number:02}."] for number in range(12)]
QUESTIONS = [f"When was mill {number} built?" for number in range(12)]
HEAD = "You are a helpful assistant.\nRules:\n- Be brief.\n- Use only this context:\n"


def prompt(number: int, joined: str) -> str:
    """A prompt with instructions, passages and the question."""
    return f"{HEAD}\n{joined.format(*PASSAGES[number])}\n\nQuestion: {QUESTIONS[number]}\nAnswer:"


@pytest.mark.parametrize(
    ("joined", "option"),
    [
        ("[1] {}\n[2] {}", "numbered"),
        ("<doc>{}</doc>\n<doc>{}</doc>", "xml"),
        ("## One\n{}\n## Two\n{}", "headings"),
        ("{}\n---\n{}", {"by": "markdown", "after": "- Use only this context:", "before": "Question:"}),
        ("{}\n\n{}", {"by": "paragraphs", "after": "- Use only this context:", "before": "Question:"}),
        ("{}\n{}", {"by": "lines", "after": "- Use only this context:", "before": "Question:"}),
        ("{} {}", {"by": "whole", "after": "- Use only this context:", "before": "Question:"}),
    ],
)
def test_the_kind_and_its_marks_are_proposed(joined: str, option: Any) -> None:
    """The kind that cuts the prompts; marks only where the passages depend on them."""
    splitter = propose_split([Prompt(prompt(n, joined), question) for n, question in enumerate(QUESTIONS)])
    assert (None if splitter is None else splitter.option) == option
    if splitter is not None:
        cut = splitter.passages(prompt(3, joined), QUESTIONS[3])
        assert cut is not None
        assert " ".join(passage.split("\n")[-1] for passage in cut) == " ".join(PASSAGES[3])


def test_an_unknown_question_is_taken_from_behind_its_label() -> None:
    """`before` is proposed where only the prompt holds the question."""
    splitter = propose_split([Prompt(prompt(number, "1. {}\n2. {}")) for number in range(12)])
    assert splitter == Splitter("numbered", "", "Question:")
    assert splitter.question(prompt(4, "1. {}\n2. {}")) == QUESTIONS[4]


def test_a_question_without_a_label_is_what_varies_in_the_last_line() -> None:
    """Where no label stands before it, all prompts begin their last line with the same words."""
    rows = [
        f"<doc>{first}</doc><doc>{second}</doc>\nAnswer this: {q}"
        for (first, second), q in zip(PASSAGES, QUESTIONS, strict=True)
    ]
    splitter = propose_split([Prompt(row) for row in rows])
    assert splitter == Splitter("xml", "", "Answer this:")
    assert splitter.question(rows[2]) == QUESTIONS[2]


def test_empty_retrievals_do_not_hinder() -> None:
    """Prompts of requests for which nothing was retrieved: between the marks stands nothing."""
    rows = [f"You are a bot. Use the context:\n{'[1] a [2]' * 0}" for _ in range(3)]
    rows += [f"You are a bot. Use the context:\n[1] Mill {n}.\n[2] River {n}." for n in range(4)]
    splitter = propose_split([Prompt(row, "Where is the mill?") for row in rows])
    assert splitter == Splitter("numbered", "You are a bot. Use the context:")
    assert [len(splitter.passages(row) or ()) for row in rows] == [0] * 3 + [2] * 4


def test_a_long_line_is_a_mark_by_its_last_words() -> None:
    """The instructions that LangChain puts before its documents are one long line."""
    head = f"{'If you do not know the answer, say so. ' * 8}Do not make anything up."
    rows = [
        f"{head}\n\n{first}\n\n{second}\n\nQuestion: {q}\nHelpful Answer:"
        for (first, second), q in zip(PASSAGES, QUESTIONS, strict=True)
    ]
    splitter = propose_split([Prompt(row) for row in rows])
    assert splitter is not None
    assert (splitter.kind, splitter.before, len(splitter.after) <= 100) == ("paragraphs", "Question:", True)
    assert (splitter.passages(rows[1]), splitter.question(rows[1])) == (PASSAGES[1], QUESTIONS[1])


def test_equal_prompts_and_none_have_no_marks() -> None:
    """Nothing varies in a single prompt, so that nothing tells its instructions from its passages."""
    assert propose_split([]) is None
    same = propose_split([Prompt(prompt(1, "[1] {}\n[2] {}"), QUESTIONS[1])] * 3)
    assert same == Splitter("numbered")


def test_a_prompt_is_found_in_the_record() -> None:
    """In a chat, or in a field: the mapping extracts it, and samples have question, passages and answer."""
    rows: list[dict[str, Any]]
    chat = [
        {
            "messages": [{"role": "user", "content": prompt(n, "[1] {}\n[2] {}")}],
            "choices": [{"message": {"content": f"x {n}"}}],
        }
        for n in range(12)
    ]
    plain = [
        {"llm": {"prompt": prompt(n, "[1] {}\n[2] {}"), "completion": f"x {n}"}, "note": "y" * 80} for n in range(12)
    ]
    for rows in (chat, plain):
        guessed = guess_prompt([*rows, {"level": "info"}])
        assert guessed is not None
        assert guessed.split is not None
        reader = LogReader(RecordRules("custom", guessed.mapping, split=guessed.split.option))
        sample = reader.read(rows[5], "x")
        assert (sample.question, [one.text for one in sample.contexts], sample.answer) == (
            QUESTIONS[5],
            PASSAGES[5],
            "x 5",
        )


def test_nothing_is_found_without_an_answer_or_a_prompt() -> None:
    """A long text that no kind cuts is no prompt."""
    assert guess_prompt([{"prompt": prompt(1, "[1] {}\n[2] {}")}]) is None
    assert guess_prompt([{"answer": "x", "text": "lorem " * 20}]) is None
