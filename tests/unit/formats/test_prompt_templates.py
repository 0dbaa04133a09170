"""Prompts of libraries, as logged with the call of a model: question and passages are cut out of them."""

import json
from collections.abc import Sequence

import pytest
import yaml
from click.testing import CliRunner

from ragwatch.commands import cli
from ragwatch.formats.guessing.suspicion import suspicions
from ragwatch.formats.log_reader import LogReader, RecordRules
from ragwatch.model.sample import Context, Sample

ANSWERS = {
    "How long is the kettle warranty?": (
        ("The kettle carries a warranty of 24 months.", "Claims require the receipt of the kettle."),
        "It lasts two years.",
    ),
    "Which filter fits the X2 jug?": (
        ("Filter F9 fits the X2 and X3 jugs.", "Filters are replaced every eight weeks."),
        "The X2 takes F9.",
    ),
    "can I wash the lid": (
        ("The lid can be washed in the dishwasher.", "The base must never be put under water."),
        "Yes, you can.",
    ),
}
LANGCHAIN = (
    "You are an assistant for question-answering tasks. Use the following pieces of retrieved context to answer the"
    " question. If you don't know the answer, just say that you don't know.\nQuestion: {question} \nContext:"
    " {paragraphs} \nAnswer:"
)
LLAMAINDEX = (
    "Context information is below.\n---------------------\n{paragraphs}\n---------------------\nGiven the context"
    " information and not prior knowledge, answer the query.\nQuery: {question}\nAnswer: "
)
SPRING = (
    "{question}\n\nContext information is below, surrounded by ---------------------\n\n---------------------\n"
    "{lines}\n---------------------\n\nGiven the context and provided history information and not prior knowledge,\n"
    "reply to the user comment. If the answer is not in the context, inform\nthe user that you can't answer it.\n"
)
OPEN_WEBUI = (
    "### Task:\nRespond using the context, with citations only when the <source> tag has an id (e.g., <source"
    ' id="1">).\n\n<context>\n{elements}\n</context>\n\n<user_query>\n{question}\n</user_query>\n'
)
ANTHROPIC = "<documents>\n{documents}\n</documents>\n\n{question}"
TEMPLATES = {
    "langchain": ("", LANGCHAIN),
    "llamaindex": ("You are an expert Q&A system that is trusted around the world.", LLAMAINDEX),
    "spring_ai": ("", SPRING),
    "open_webui": ("", OPEN_WEBUI),
    "anthropic": ("Answer from the documents only.", ANTHROPIC),
    "langchain4j": ("", "{question}\n\nAnswer using the following information:\n{paragraphs}"),
    "azure_sample": ("Answer ONLY with the facts listed in the list of sources.", "{question}\n\nSources:\n{lines}"),
    "question_first": (
        "Cite as [n].",
        "User question: {question}\n\nSearch results:\n{numbered}\n\nWrite a concise answer with citations.",
    ),
    "quoted": ("", 'Context:\n"""\n{paragraphs}\n"""\n\nQuestion: """{question}"""\n'),
    "anything_llm": ("Given the relevant context, reply with an answer.\nContext:\n{numbered}\n\n", "{question}"),
}


def prompts(name: str, question: str, passages: Sequence[str]) -> list[dict[str, str]]:
    """The messages that a library sends."""
    values = {
        "question": question,
        "lines": "\n".join(passages),
        "paragraphs": "\n\n".join(passages),
        "numbered": "\n".join(f"[{number}] {one}" for number, one in enumerate(passages, start=1)),
        "elements": "\n".join(f'<source id="{number}">{one}</source>' for number, one in enumerate(passages)),
        "documents": "\n".join(
            f"<document>\n<source>faq.md</source>\n<document_content>\n{one}\n</document_content>\n</document>"
            for one in passages
        ),
    }
    system, user = (text.format(**values) for text in TEMPLATES[name])
    return [*([{"role": "system", "content": system}] if system else []), {"role": "user", "content": user}]


@pytest.mark.parametrize("name", TEMPLATES)
def test_init_reads_the_question_and_only_the_passages_of_a_prompt(name: str) -> None:
    """Neither what orders the model how to answer nor the question is in a context."""
    lines = []
    for number, (question, (passages, answer)) in enumerate(ANSWERS.items()):
        call = {"request": {"messages": prompts(name, question, passages)}}
        lines.append(
            json.dumps({**call, "response": {"id": f"c{number}", "choices": [{"message": {"content": answer}}]}})
        )
    result = CliRunner().invoke(cli, ["init", "--print", "-"], input="\n".join(lines), standalone_mode=False)
    source = yaml.safe_load(result.stdout)
    assert result.return_value == 0, result.output
    reader = LogReader(RecordRules(**{key: source[key] for key in ("format", "mapping", "split") if key in source}))
    for line in lines:
        sample = reader.read(json.loads(line), "x")
        texts = [context.text for context in sample.contexts]
        passages, _ = ANSWERS[str(sample.question)]
        assert all(any(passage in text for text in texts) for passage in passages), sample
        assert all(any(passage in text for passage in passages) for text in texts), sample
        assert "nswer" not in "".join(texts), sample
        assert str(sample.question) not in "".join(texts), sample


def test_an_order_that_all_contexts_begin_with_is_cut_off() -> None:
    """In any language: it is neither a passage nor a part of one."""
    order = "Du bist ein Assistent. Beantworte die Frage nur mit Hilfe des Kontexts.\n\n"
    rows = [
        {"question": question, "context": order + " ".join(texts), "answer": answer}
        for question, (texts, answer) in ANSWERS.items()
    ]
    result = CliRunner().invoke(cli, ["init", "--print", "-"], input="\n".join(map(json.dumps, rows)))
    source = yaml.safe_load(result.stdout)
    reader = LogReader(RecordRules(**{key: source[key] for key in ("format", "mapping", "split")}))
    contexts = [context.text for row in rows for context in reader.read(row, "x").contexts]
    assert contexts == [" ".join(texts) for texts, _ in ANSWERS.values()]


def test_cut_texts_are_recognised_by_their_ellipsis() -> None:
    """Previews of one length are refused also where dots say that they are cut."""
    samples = [
        Sample(question, question, tuple(Context(f"{text} {text} {text}"[:80] + "...") for text in texts), answer)
        for question, (texts, answer) in ANSWERS.items()
    ]
    assert [text.partition(", ")[0] for text in suspicions(samples)] == ["contexts are cut to 83 characters"]
