r"""Contexts that only the prompt holds: variables of its template, or marked blocks of a message.

Used if no retriever says what it returned, or if it says ids only. Blocks are recognised by marks that only prompts for
RAG have: XML elements, a heading `Context:` or the like, and lines of dashes around it.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import islice

from ragwatch.formats.split import BLANK_LINE, ORDER, asked_in, numbered, unquoted, without_order, xml_blocks
from ragwatch.formats.traces.documents import Document, documents_in
from ragwatch.formats.traces.span import decoded, plain_text

_CONTEXT_KEYS = (
    "context", "context_str", "contexts", "context_list", "documents", "docs", "passages", "retrieved_documents",
    "retrieved_context", "retrieved_contexts", "source_documents", "sources", "chunks", "knowledge", "snippets",
    "text_chunks", "references", "background", "evidence",
)  # fmt: skip
_QUESTION_KEYS = ("question", "query", "query_str", "user_question", "user_query", "user_input", "input")
_VARIABLE = ("gen_ai.prompt.variable.", "langfuse.prompt.variable.")
_TEMPLATES = ("llm.prompt_template.variables", "gen_ai.prompt.variables", "spring.ai.chat.client.user.params",
              "spring.ai.chat.client.system.params")  # fmt: skip
_SEPARATORS = (
    re.compile(r"\n[ \t]*\n(?=(?:source|document|title|content|passage|chunk)\b[^\n]{0,20}:)", re.IGNORECASE),
    re.compile(r"\n[ \t]*\n?(?:-{3,}|={3,}|\*{3,}|#{3,})[ \t]*\n"),
    re.compile(r"\n[ \t]*\n"),
    re.compile(r"\n"),
)
_MAX_CHARS = 400_000
_MIN_WORDS = 3  # of a passage; less may be a part of a question
_DASHES = re.compile(r"(?m)^-{5,}[ \t]*$")
_CONTEXT_WORD = re.compile(r"(?i)context|document|passage|source|excerpt|search result|knowledge")
_NAMED = (
    r"(?:[\w' ]{0,60}\b)?(?:contexts?(?: information)?|documents|passages|sources|excerpts|search results"
    r"|retrieved [\w ]{1,30}|knowledge(?: base)?|background(?: information)?"
    r"|(?:following|relevant|provided|additional) information)\b[^\n:]{0,40}:"
)
_HEADING = re.compile(rf"(?im)^[ \t#*]*{_NAMED}[ \t*]*")
_END = re.compile(
    r"(?im)^[ \t#*]*(?:(?:user )?(?:question|query|input|request)|user|human|instructions?|task|answer|helpful answer"
    r"|response|assistant|rules|output)\b[^\n:]{0,40}:"
)
_QUESTION = re.compile(
    r"(?im)(?:^|(?<=[\s.>]))(?:user )?(?:question|query|q)\s*:[ \t]*\n?"
    rf"(?P<text>[^\n]+(?:\n(?!\s*(?:(?:helpful )?(?:answer|response)\b|[#*]*{_NAMED}))[^\n]+)*)"
)
_LINE_TAG = re.compile(r"(?m)^[ \t]*<[a-zA-Z]")
_TAG = re.compile(r"</?[a-zA-Z][\w-]{0,40}(?:[ \t\n][^<>]{0,500})?>")


def variables(attributes: Mapping[str, object]) -> dict[str, object]:
    """Return the variables of a prompt template that a span was given, by name."""
    named: dict[str, object] = {}
    for key in _TEMPLATES:
        value = decoded(attributes.get(key))
        if isinstance(value, dict):
            named.update(value)
    for prefix in _VARIABLE:
        named |= {key.removeprefix(prefix): value for key, value in attributes.items() if key.startswith(prefix)}
    return named


def of_variables(named: Mapping[str, object], count: int = 0) -> tuple[Document, ...] | None:
    """Return the contexts among the variables of a prompt; None if there are none.

    `count` is how many documents the retriever returned, 0 if unknown: a text with as many blocks is split into them.
    """
    lowered = {key.lower(): value for key, value in named.items()}
    for key in _CONTEXT_KEYS:
        value = decoded(lowered.get(key))
        if isinstance(value, (list, dict)):
            documents = documents_in(value)
            if documents and any(one.text for one in documents):
                return documents
        text = plain_text(value)
        if text is not None:
            return tuple(Document(part) for part in blocks(text, count))
    return None


def question_among(named: Mapping[str, object]) -> str | None:
    """Return the question among the variables of a prompt; None if there is none."""
    lowered = {key.lower(): value for key, value in named.items()}
    return next((text for key in _QUESTION_KEYS if (text := plain_text(lowered.get(key))) is not None), None)


def blocks(text: str, count: int) -> list[str]:
    r"""Split a text into `count` blocks if one of the usual separators gives exactly so many; else at marks, or not.

    >>> blocks("Paris is big.\n\nLyon is a city.", 2), blocks("Paris.\n\nLyon.", 3)
    (['Paris is big.', 'Lyon is a city.'], ['Paris.\n\nLyon.'])
    """
    text = text[:_MAX_CHARS]
    elements = _elements(text)
    if elements:
        return [one.text for one in elements if one.text]
    marked = numbered(text, throughout=True)
    if marked and count in (0, len(marked)):
        return [part.strip() for part in marked]
    if count > 1:
        for separator in _SEPARATORS:
            parts = [part.strip() for part in separator.split(text) if part.strip()]
            if len(parts) == count:
                return parts
    return [text.strip()]


def of_messages(texts: Sequence[str], count: int = 0) -> tuple[Document, ...] | None:
    r"""Return the contexts inside of messages to the model; None if no mark shows where they are.

    >>> of_messages(["Answer from context:\nParis is big.\n\nQuestion: How big is Paris?"])
    (Document(text='Paris is big.', id=None, score=None, step=None, updated_at=None),)
    >>> of_messages(["You are helpful.", "How big is Paris?"])
    """
    for text in texts:
        shortened = text[:_MAX_CHARS]
        elements = _elements(shortened)
        if elements:
            return elements
        start, end = _between_dashes(shortened) or _after_heading(shortened) or (0, 0)
        passage = shortened[start:end].strip()
        if passage:
            return tuple(Document(part) for part in blocks(without_order(passage), count))
    return None


def question_without_label(text: str) -> str | None:
    """Return the question of a prompt without a label: the one paragraph outside of its passages without an order."""
    text = text[:_MAX_CHARS]
    documents = _elements(text)
    if documents:
        last = documents[-1].text or ""
        opened = _LINE_TAG.search(text)
        span = opened.start() if opened else text.find(documents[0].text or ""), text.rfind(last) + len(last)
    else:
        span = _between_dashes(text) or _after_heading(text) or (0, len(text))
    heading = text.rfind("\n", 0, span[0]) + 1  # the line that announces the passages
    return _asked_in(f"{text[:heading]}\n\n{text[span[1] :]}")


def question_without_passages(prompt: str, documents: Sequence[Document]) -> str | None:
    """Return the question in a text that holds documents, the text itself if it holds none; None if none is found."""
    held = [one.text for one in documents if one.text and one.text in prompt and len(one.text.split()) >= _MIN_WORDS]
    if not held:
        return prompt
    for text in held:
        prompt = prompt.replace(text, "\n\n")
    return question_in(prompt) or _asked_in(prompt)


def _asked_in(outside: str) -> str | None:
    """The one paragraph outside of passages that neither gives an order nor announces them."""
    parts = [part for one in BLANK_LINE.split(outside) if (part := _TAG.sub("", one).strip(" \t\r\n-"))]
    asked = [part for part in parts if not ORDER.match(part) and not _CONTEXT_WORD.search(part)]
    return asked[0] if len(asked) == 1 else None


def _after_heading(text: str) -> tuple[int, int] | None:
    heading = _HEADING.search(text)
    if heading is None:
        return None
    end = _END.search(text, heading.end())
    return heading.end(), end.start() if end else len(text)


def _between_dashes(text: str) -> tuple[int, int] | None:
    """Return where the text between the first two lines of dashes is, if the line before them announces contexts."""
    lines = [*islice(_DASHES.finditer(text), 2)]
    before = text[: lines[0].start()].rstrip().rpartition("\n")[2] if len(lines) > 1 else ""
    return (lines[0].end(), lines[1].start()) if _CONTEXT_WORD.search(before) else None


def _elements(text: str) -> tuple[Document, ...]:
    """The contents of the XML elements whose names are those of contexts; of a list, its numbered passages."""
    documents: list[Document] = []
    for block in xml_blocks(text) or ():
        texts = (numbered(block.text, throughout=True) if block.is_list else None) or [block.text]
        documents += [Document(part.strip(), block.id) for part in texts if part.strip()]
    return tuple(documents)


def question_in(prompt: str) -> str | None:
    """Return the question that a prompt with contexts ends with; None if no mark shows where it is."""
    end = prompt[-_MAX_CHARS:]
    marks = list(_QUESTION.finditer(end))
    return asked_in(end) or (unquoted(marks[-1]["text"].strip()) or None if marks else None)
