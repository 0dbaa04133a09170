"""Reads the user's turns before a question: what a short question leaves out, and what the user has stated.

**Follow-ups.** A question of fewer than `COMPLETE` terms ("And for students?") is completed by the user's turns before
it, the latest first, until it has that many; words of earlier turns weigh `EARLIER` times theirs. Contexts are compared
with the question as it is and as completed, and the better result counts, because a short question may as well be about
something new. An answer that covers only the completed question addresses it partially. A claim need not take the words
of the question from the contexts; of a question with fewer than `ELLIPTIC` terms, these are the words of the completed
one, so that claims are ruled on as if it had been asked in full. (With the words of all turns of the user, claims were
called supported more often beside contexts of other conversations: mtRAG, AUROC .982 instead of .984.)

**Statements.** A claim that no context supports, but that repeats what the user stated, is no invention. It must have
at least `MIN_REPEATED` terms, all of them in one sentence of the user, numbers and names included, and both must be
negated or neither. A question, a request and a list of keywords state nothing. The current question does not count, and
what the assistant said before is not read at all.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from ragwatch.judges.claims.limits import Check, unlimited
from ragwatch.judges.claims.sentences import spans
from ragwatch.judges.claims.words import terms
from ragwatch.statistics.text.alphabet import visible_text

COMPLETE = 4
EARLIER = 0.5
ELLIPTIC = 2
MIN_REPEATED = 2

_ASKS = re.compile(
    r"\W*(?:(?:and|but|so|or|ok|okay|also|then|well|hi|hello|hey|thanks|please)\b\W{0,3}){0,4}"
    r"(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|am|do|does|did|can|could|will|would|shall|should"
    r"|may|might|must|has|have|had|isn['’]t|aren['’]t|don['’]t|doesn['’]t|didn['’]t|can['’]t|tell|explain|show|describe"
    r"|give|list|compare|find|summari[sz]e|imagine|suppose|assume|let)\b",
    re.IGNORECASE,
)
_WANTS_TO_KNOW = re.compile(
    r"\b(?:if|whether|know|wonder|wondering|curious|tell me|explain|understand|find out|learn|asking|question)\b",
    re.IGNORECASE,
)
_STATES = re.compile(
    r"\b(?:i|we|he|she|they|it|my|our|am|is|are|was|were|has|have|had|do|does|did|will|would|can|could|cannot|must"
    r"|should|\w{1,12}['’](?:m|s|re|ve|t|d|ll))\b",
    re.IGNORECASE,
)
NEGATION = re.compile(
    r"\b(?:no|not|never|none|nor|neither|nothing|without|cannot|non|except|unless|excluded|false)\b|n['’]t\b",
    re.IGNORECASE,
)
_YOU = re.compile(r"\byou(?:r|rs)?\b", re.IGNORECASE)
_REPORTING = frozenset(terms("say said mention mentioned tell told state stated note noted write wrote"))

_ELLIPTIC = re.compile(
    r"\W*(?:(?:and|or|but|so|ok|okay|then|what about|how about)\b\W{0,3}){1,3}"
    r"(?!.{0,200}\b(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|do|does|did|can|could|will|would"
    r"|should|has|have)\b)",
    re.IGNORECASE | re.DOTALL,
)


class Statement(NamedTuple):
    """A sentence in which the user states something: its terms, and whether it is negated."""

    terms: frozenset[str]
    negated: bool


def completed(question: str, user_turns: Sequence[str]) -> str:
    """A question with the user's turns that it needs to have `COMPLETE` terms; the question itself if it has them.

    >>> completed("And for students?", ["Hello!", "How much is the ticket to the castle garden?"])
    'How much is the ticket to the castle garden? And for students?'
    >>> completed("Which bus goes from the old station to the castle?", ["How much is the ticket?"])
    'Which bus goes from the old station to the castle?'
    """
    parts = [question]
    words = set(terms(question))
    for turn in reversed(user_turns):
        if len(words) >= COMPLETE:
            break
        parts.append(turn)
        words.update(terms(turn))
    return " ".join(reversed(parts))


def asks_for(question: str, user_turns: Sequence[str]) -> str:
    """The question that says which kind of thing is asked for: the one before, if the last one leaves that out.

    >>> asks_for("And for students?", ["How much is a ticket?"]), asks_for("And where is it?", ["How much is it?"])
    ('How much is a ticket?', 'And where is it?')
    """
    for turn in reversed(user_turns):
        if not _ELLIPTIC.match(question):
            break
        question = turn
    return question


def statements_of(user_turns: Sequence[str], check: Check = unlimited) -> list[Statement]:
    """The sentences in which the user states something.

    >>> [sorted(said.terms) for said in statements_of(["I live in Bern. Is the museum free?", "museum opening hours"])]
    [['bern', 'live']]
    """
    statements = []
    for turn in map(visible_text, user_turns):
        for span in spans(turn):
            check()
            text = turn[span.start : span.end]
            asks = text.rstrip("\"'”’») ").endswith(("?", "？")) or _ASKS.match(text)
            if not asks and _STATES.search(text) and not _WANTS_TO_KNOW.search(text):
                statements.append(Statement(frozenset(terms(text)), NEGATION.search(text) is not None))
    return statements


def repeats(claim: str, statements: Sequence[Statement]) -> bool:
    """Whether a claim only repeats one of the statements. "You said that" is no part of it.

    >>> said = statements_of(["I bought a ticket for 10 euros."])
    >>> repeats("As you said, you bought a ticket for 10 euros.", said), repeats("A ticket is 12 euros.", said)
    (True, False)
    """
    if not statements:
        return False
    words = set(terms(claim))
    if _YOU.search(claim):
        words -= _REPORTING
    if len(words) < MIN_REPEATED:
        return False
    negated = NEGATION.search(claim) is not None
    return any(said.negated == negated and words <= said.terms for said in statements)
