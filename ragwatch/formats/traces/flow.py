"""What a call of a model was given: the documents, and the answers of other calls, that its prompt holds.

Prompts change white space and marks around a passage, and may cut it. Only letters and digits are compared, and the
beginning, the middle or the end of a passage is enough.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from ragwatch.formats.traces.documents import Document
from ragwatch.formats.traces.messages import INPUT_KEYS, SYSTEM_KEYS, VALUE_INPUTS, messages_in
from ragwatch.formats.traces.span import Span, cut_length, decoded, is_torn

_SENT = (*INPUT_KEYS, *SYSTEM_KEYS, *VALUE_INPUTS)
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
_MARKS = re.compile(r"\\[nrt]|[\W_]+")
_SHORTENED = re.compile(r"(?i)(?:\.\.\.|…)\s*$|truncated")
_PIECE = 40
_LEAST_ANSWER = 16
"""Letters of an answer, below which a prompt holds it by chance."""
_LEAST_GIVEN = 2  # documents in prompts; a single one may be a quotation
_MAX_DEPTH = 12


def prompt_of(span: Span) -> str:
    """Return letters and digits of all texts that were sent to a model, results of tools included."""
    return _letters("\n".join(_sent(span)))


def position_in(prompt: str, text: str | None) -> int:
    """Return where a text, or a piece of it, is in a prompt; -1 if it is not."""
    letters = _letters(text or "")
    middle = max(0, len(letters) - _PIECE) // 2
    pieces = (letters[:_PIECE], letters[middle : middle + _PIECE], letters[-_PIECE:])
    return next((at for piece in pieces if piece and (at := prompt.find(piece)) >= 0), -1)


def builds_on(prompt: str, answer: str) -> bool:
    """Return whether a prompt holds the whole answer of another call."""
    letters = _letters(answer)
    return len(letters) >= _LEAST_ANSWER and letters in prompt


def documents_given(
    span: Span, calls: Iterable[tuple[Span, str]], documents: Sequence[Document], *, several: bool
) -> list[Document]:
    """Return those of the documents that a call was given, in their order.

    A document counts that is in its prompt, or in that of a call whose answer the prompt holds. Where prompts hold
    fewer than two, or were cut, all of them count. Documents of `several` retrievals are in the order of the prompt.
    """
    if not several and _all_in(_raw(span), documents):
        return list(documents)
    texts = list(_sent(span))
    whole = "\n".join(texts)
    length = cut_length([span.attributes])
    is_cut = span.dropped or any(
        is_torn(text) or len(text) == length or _SHORTENED.search(text[-100:]) for text in texts
    )
    if is_cut or (not several and _all_in(whole, documents)):
        return list(documents)
    prompts, waiting = [_letters(whole)], list(calls)
    places = [position_in(prompts[0], one.text) for one in documents]
    if min(places, default=0) >= 0:
        ordered = sorted(zip(places, range(len(places)), strict=True)) if several else enumerate(range(len(places)))
        return [documents[rank] for _, rank in ordered]
    for prompt in prompts:  # grows by the calls that the answer builds on
        for call in [one for one in waiting if builds_on(prompt, one[1])]:
            waiting.remove(call)
            prompts.append(prompt_of(call[0]))
    kept = [one for one in documents if any(position_in(prompt, one.text) >= 0 for prompt in prompts)]
    return kept if len(kept) >= _LEAST_GIVEN else list(documents)


def _all_in(texts: str, documents: Iterable[Document]) -> bool:
    return all(one.text in texts for one in documents if one.text)


def _raw(span: Span) -> str:
    return "\n".join(
        value for key, value in span.attributes.items() if isinstance(value, str) and key.startswith(_SENT)
    )


def _sent(span: Span) -> Iterator[str]:
    for key, value in span.attributes.items():
        if key.startswith(_SENT):
            yield from _texts(value, _MAX_DEPTH)
    for message in messages_in(span):
        yield message.text


def _texts(value: object, depth: int) -> Iterator[str]:
    value = decoded(value)
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)) and depth:
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part, depth - 1)


def _letters(text: str) -> str:
    return _MARKS.sub("", _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), text)).lower()
