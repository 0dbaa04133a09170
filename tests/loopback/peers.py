"""What ragas asks, answered: a claim is a sentence, a reason is some thirty tokens, scores come from words.

ragas shows its input as JSON behind a fixed line; which prompt it is follows from the input's keys. With Instructor
the reply goes back as the call of a tool.
"""

import json
import math
from collections.abc import Callable, Mapping
from hashlib import blake2b
from types import MappingProxyType
from typing import Any

from ragwatch.judges.claims.claims import claims_of
from ragwatch.judges.claims.sentences import spans
from ragwatch.judges.claims.words import terms
from ragwatch.judges.lexical.reader import Thresholds, read
from ragwatch.judges.lexical.tables import shipped
from ragwatch.model.sample import Context, Sample

_BEHIND = "Now perform the same with the following input"
_REASON = (
    "The given context {} this in so many words, as a comparison of the names, numbers and terms of both texts shows."
)
DIMENSIONS = 256


def input_of(prompt: str) -> dict[str, Any] | None:
    """The input that a prompt of ragas shows; None for any other prompt.

    >>> input_of('... Now perform the same with the following input input: {"response": "Tea."} Output: ')
    {'response': 'Tea.'}
    """
    _, found, rest = prompt.rpartition(_BEHIND)
    start = rest.find("{")
    if not found or start < 0:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(rest[start:])
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def reply_to(asked: Mapping[str, Any]) -> dict[str, Any] | None:
    """The reply to an input, by its keys; None when no prompt of ragas has them."""
    play = _PLAY.get(frozenset(asked))
    return play(asked) if play else None


def _statements(asked: Mapping[str, Any]) -> dict[str, Any]:
    answer = str(asked["answer"])
    return {"statements": [answer[span.start : span.end] for span in spans(answer)]}


def _faithful(asked: Mapping[str, Any]) -> dict[str, Any]:
    rows = [(statement, _supports(str(asked["context"]), str(statement))) for statement in asked["statements"]]
    return {"statements": [{"statement": said, "reason": _reason(yes=yes), "verdict": int(yes)} for said, yes in rows]}


def _useful(asked: Mapping[str, Any]) -> dict[str, Any]:
    evidence = _read(str(asked["context"]), str(asked["answer"]), str(asked["question"]))
    yes = evidence.contexts[0].relevant is True
    return {"reason": _reason(yes=yes), "verdict": int(yes)}


def _question(asked: Mapping[str, Any]) -> dict[str, Any]:
    answer = str(asked["response"])
    words = answer.split()[:14]
    return {"question": f"What is known about {' '.join(words)}?", "noncommittal": int(claims_of(answer).abstained)}


_PLAY: Mapping[frozenset[str], Callable[[Mapping[str, Any]], dict[str, Any]]] = MappingProxyType({
    frozenset({"question", "answer"}): _statements,
    frozenset({"context", "statements"}): _faithful,
    frozenset({"question", "context", "answer"}): _useful,
    frozenset({"response"}): _question,
})  # fmt: skip


def _reason(*, yes: bool) -> str:
    return _REASON.format("says" if yes else "does not say")


def _supports(context: str, statement: str) -> bool:
    evidence = _read(context, statement, None)
    return bool(evidence.claims) and all(claim.verdict == "supported" for claim in evidence.claims)


def _read(context: str, answer: str, question: str | None) -> Any:
    sample = Sample("peer", question, (Context(context),), answer)
    return read(sample, claims_of(answer, question), shipped(), Thresholds())


def embedding(text: str) -> list[float]:
    """A bag of words, hashed into a vector of length one.

    >>> embedding("green tea") == embedding("tea, green!")
    True
    """
    vector = [0.0] * DIMENSIONS
    for word in terms(text) or ("",):
        vector[int.from_bytes(blake2b(word.encode(), digest_size=2).digest()) % DIMENSIONS] += 1.0
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector]
