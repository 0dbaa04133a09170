"""What deepeval, TruLens and phoenix-evals ask, answered: scores by shared words, reasons of some thirty tokens.

Which tool asks follows from fixed words of its prompts. A statement is a sentence, and a verdict about one has a reason
only where it is "no", as deepeval wants it.
"""

import ast
import re
from collections.abc import Callable, Sequence
from typing import Any

from ragwatch.judges.claims.sentences import spans
from ragwatch.judges.claims.words import terms

_REASON = (
    "A comparison of the names, numbers and terms of both texts shows that they {} the same in so many words here."
)
_SHARED = 0.5
_DEEPEVAL = "IMPORTANT: Please make sure to only return in"
_CHOICE = re.compile(r"Is the [^?]*?\b(\w+) or (\w+)\b[^?]*\?\s*\Z")


def reply_to(prompt: str) -> dict[str, Any] | str | None:
    """The reply to a prompt of one of these tools; None for any other.

    >>> reply_to("<data>Tea is green.</data> Is the output correct or incorrect?")["label"]
    'correct'
    """
    if _DEEPEVAL in prompt:
        return _deepeval(prompt)
    if "SOURCE: " in prompt and "STATEMENT: " in prompt:
        source, statement = _after(prompt, "SOURCE: ", "STATEMENT: "), _after(prompt, "STATEMENT: ", "Respond ONLY")
        return _graded(statement, yes=_shares(statement, source))
    if "USER QUERY: " in prompt or "PROMPT: " in prompt:
        return _graded("What is asked is what the text is about.", yes=True)
    if "ALL STATEMENTS: " in prompt:
        return _after(prompt, "ALL STATEMENTS: ", "IMPORTANT STATEMENTS:")
    choice = _CHOICE.search(prompt)
    return {"explanation": _REASON.format("say"), "label": choice[1]} if choice else None


def _deepeval(prompt: str) -> dict[str, Any] | None:
    for mark, key, play in _PLAYS:
        if mark in prompt and f"'{key}'" in prompt.replace('"', "'"):
            return {key: play(prompt)}
    return None


def _sentences(mark: str) -> Callable[[str], list[str]]:
    def of(prompt: str) -> list[str]:
        text = _after(prompt, mark, "JSON:")
        return [text[span.start : span.end] for span in spans(text)]

    return of


def _claims(prompt: str) -> list[dict[str, Any]]:
    contexts = _after(prompt, "\nRetrieval Contexts:\n", "\nClaims:\n")
    return [_verdict(yes=_shares(claim, contexts)) for claim in _listed(prompt, "\nClaims:\n")]


def _statements(prompt: str) -> list[dict[str, Any]]:
    return [_verdict(yes=True) for _ in _listed(prompt, "\nStatements:\n")]


def _passage(prompt: str) -> list[dict[str, Any]]:
    asked = _after(prompt, "\nInput:\n", "\nContext:\n")
    sentences = _sentences("\nContext:\n")(prompt)
    return [{"statement": said, **_verdict(yes=_shares(asked, said, least=0.2))} for said in sentences]


def _score_reason(prompt: str) -> str:
    del prompt
    return f"The score is what it is because of this: {_REASON.format('say')}"


_PLAYS: Sequence[tuple[str, str, Callable[[str], Any]]] = (
    ("\nAI Output:\n", "claims", _sentences("\nAI Output:\n")),
    ("\nRetrieval Contexts:\n", "verdicts", _claims),
    ("\nStatements:\n", "verdicts", _statements),
    ("\nContext:\n", "verdicts", _passage),
    ("\nText:\n", "truths", _sentences("\nText:\n")),
    ("\nText:\n", "statements", _sentences("\nText:\n")),
    ("Score:\n", "reason", _score_reason),
)


def _after(prompt: str, mark: str, end: str) -> str:
    """The text behind the last place of a mark, up to the last end behind it."""
    rest = prompt.rpartition(mark)[2]
    return (rest.rpartition(end)[0] or rest).strip()


def _listed(prompt: str, mark: str) -> list[Any]:
    """The list behind a mark, as Python writes it."""
    try:
        return list(ast.literal_eval(_after(prompt, mark, "JSON:")))
    except (SyntaxError, ValueError):
        return []


def _shares(statement: str, text: str, *, least: float = _SHARED) -> bool:
    words = set(terms(statement))
    return len(words & set(terms(text))) >= least * len(words)


def _verdict(*, yes: bool) -> dict[str, Any]:
    return {"verdict": "yes", "reason": None} if yes else {"verdict": "no", "reason": _REASON.format("do not say")}


def _graded(criteria: str, *, yes: bool) -> dict[str, Any]:
    return {"criteria": criteria, "supporting_evidence": _REASON.format("say"), "score": 3 if yes else 0}
