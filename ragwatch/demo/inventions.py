"""Invents as a language model does: little in a right answer is changed, so that all of it sounds right."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragwatch.demo.stable_hash import stable_hash

_NUMBER = re.compile(r"(?<![\w.])[1-9]\d?(?![\w.]\w)")
_OPPOSITES = {
    one: other
    for pair in (
        "first last", "left right", "ascending descending", "largest smallest", "leading trailing", "before after",
        "start end", "beginning end", "lower upper", "lowercase uppercase", "True False", "read write", "reads writes",
        "minimum maximum", "oldest newest", "local global", "client server", "seconds milliseconds",
        "keys values", "files directories", "list tuple", "input output", "open closed",
    )
    for one, other in (pair.split(), pair.split()[::-1])
}  # fmt: skip
_OPPOSITE = re.compile(rf"\b(?:{'|'.join(_OPPOSITES)})\b")
_CONDITION = re.compile(r",? (?:if|unless|only if|provided that|except) [^.;:()]+(?=[.;:])")
_NEGATION = re.compile(r"\b(does|do|is|are|was|were|has|have|can|will|should) ?(?:not\b|n't)")
_CLAUSES = (
    "and gives up after {number} attempts",
    "and keeps the result in a cache for {number} minutes",
    "which has been deprecated since version 3.{small}",
    "which takes at most {number} items per call",
    "and writes a warning to the log after {number} seconds",
    "which works on 64-bit platforms only",
    "and retries {small} times before it raises TimeoutError",
    "and leaves a backup copy in the temporary folder",
)
_FACTS = (
    "The optional argument limit defaults to {number}.",
    "Since version 3.{small} it runs in a background thread.",
    "Results larger than {number} kilobytes are compressed on disk.",
    "It needs administrator rights on Windows.",
    "Each call is written to the audit log for {number} days.",
    "It is about {small} times faster with the environment variable PYTHONTURBO.",
)


def with_inventions(question: str, sentences: Sequence[str]) -> tuple[str, ...]:
    """Changes one sentence of a right answer and adds a false one; the same ones for the same question.

    >>> with_inventions("Why?", ["The queue is read every 5 seconds."])[0]
    'The queue is read every 16 seconds.'
    """
    seed = stable_hash(question)
    changed = seed % len(sentences)
    lines = [_changed(line, seed) if place == changed else line for place, line in enumerate(sentences)]
    return (*lines, _filled(_FACTS, seed // 100))


def _changed(sentence: str, seed: int) -> str:
    """A sentence with a number or a word changed, without its condition or negation, or with a clause more."""
    changes = (
        lambda: _NUMBER.sub(lambda number: str(3 * int(number[0]) + 1), sentence, count=1),
        lambda: _OPPOSITE.sub(lambda word: _OPPOSITES[word[0]], sentence, count=1),
        lambda: _NEGATION.sub(r"\1", _CONDITION.sub("", sentence, count=1), count=1),
    )
    for turn in range(len(changes)):
        changed = changes[(seed + turn) % len(changes)]()
        if changed != sentence:
            return changed
    return f"{sentence[:-1]}, {_filled(_CLAUSES, seed)}{sentence[-1]}"


def _filled(templates: Sequence[str], seed: int) -> str:
    template = templates[seed % len(templates)]
    return template.format(number=15 + seed // 10 % 80, small=4 + seed // 1000 % 6)
