"""Splits the claims of an answer into atomic facts, and combines the reading of a sentence with those of its facts.

"Einstein developed the theory of relativity in 1905 while working at the Swiss patent office in Bern." holds four
facts: what he developed, when, where he worked meanwhile, and where that was. The facts of a sentence are its own
words, in their order (see `clauses`). A fact is read together with the subject of its sentence, which is no part of
its span. Instructions, conditions, alternatives and questions are not split.
"""

from collections.abc import Sequence

from ragwatch.judges.claims.claims import AnswerClaims, ClaimText, claims_of
from ragwatch.judges.claims.clauses import LOOSE, Boundary, Part, Token, parts_of, tokens_of
from ragwatch.judges.claims.limits import Check, unlimited
from ragwatch.judges.claims.steps import actions
from ragwatch.judges.claims.words import word_set
from ragwatch.statistics.text.alphabet import visible_text
from ragwatch.statistics.text.phrases import without_leads

MAX_TOKENS = 400
"""A sentence with more words and signs is none (a table, a dump), and stays whole."""

MAX_CARRIED_CHARS = 80
"""A longer subject is not carried, so that the facts together have not many more characters than the answer."""

_MAX_CARRIED = 6  # words of the subject
_WHOLE = word_set("if unless whether or either otherwise provided except than only")
# Conditions, alternatives and comparisons; a sentence with such a word stays whole.


def facts_of(
    answer: str, question: str | None = None, *, max_claims: int | None = None, check: Check = unlimited
) -> AnswerClaims:
    """Split an answer into the facts of its claims. What is no claim, and what abstains, is as in `claims_of`.

    With `max_claims` it stops after one more, which shows that there are too many. `check` is called for each sentence.

    >>> text = "Einstein developed the theory of relativity in 1905 while working at the Swiss patent office in Bern."
    >>> for fact in facts_of(text).claims:
    ...     print(text[fact.start : fact.end])
    Einstein developed the theory of relativity
    in 1905
    while working at the Swiss patent office
    in Bern.
    """
    said = claims_of(answer, question, max_claims=max_claims, check=check)
    text = visible_text(answer)
    facts: list[ClaimText] = []
    for claim in said.claims:
        check()
        facts += split(claim, text)
        if max_claims is not None and len(facts) > max_claims:
            return said._replace(claims=tuple(facts[: max_claims + 1]))
    return said._replace(claims=tuple(facts))


def split(claim: ClaimText, answer: str) -> list[ClaimText]:
    """Split one claim, a whole sentence of a visible text, into its facts; the claim itself if it is atomic."""
    sentence = answer[claim.start : claim.end]
    if sentence.endswith("?") or claim.words != without_leads(sentence) or actions(claim.words):
        return [claim]
    tokens = tokens_of(sentence)
    if not tokens or len(tokens) > MAX_TOKENS or any(token.low in _WHOLE for token in tokens):
        return [claim]
    parts = parts_of(tokens)
    if len(parts) == 1:
        return [claim]
    spans = _spans(sentence, tokens, parts)
    main = next((part for part in parts if part.why not in LOOSE), parts[0])
    subject, predicate = _subject(sentence, tokens, main)
    facts = []
    for part, (start, end) in zip(parts, spans, strict=True):
        carried = "" if part is main else predicate if part.why is Boundary.ITEM else subject
        own = sentence[start:end]
        words = without_leads(f"{carried} {own}".lstrip())
        facts.append(ClaimText(claim.start + start, claim.start + end, words, claim, without_leads(own)))
    return facts


def combine(whole: float, parts: Sequence[float]) -> list[float]:
    """Support of each fact of a sentence, from the reading of the whole sentence and those of its facts.

    The sentence's own reading is that of its weakest fact, because it is the more exact one; no other fact has less.
    So the least support among the facts is that of the sentence, as if it had not been split.

    >>> combine(0.25, [0.75, 0.5, 0.125])
    [0.75, 0.5, 0.25]
    >>> combine(0.75, [0.5, 0.875])
    [0.75, 0.875]
    """
    least = weakest(parts)
    return [whole if index == least else max(whole, value) for index, value in enumerate(parts)]


def weakest(parts: Sequence[float]) -> int:
    """Index of the least; the first among equals."""
    return min(range(len(parts)), key=parts.__getitem__)


def _spans(sentence: str, tokens: Sequence[Token], parts: Sequence[Part]) -> list[tuple[int, int]]:
    """Offsets of the parts in the sentence, without the commas and the "and" between them."""
    spans = []
    for index, part in enumerate(parts):
        first, last = part.first, part.last
        while index and first + 1 < last and tokens[first].low in (",", ";", "—", "and", "but"):
            first += 1
        while index + 1 < len(parts) and last - 1 > first and tokens[last - 1].low in (",", ";", "—"):
            last -= 1
        spans.append((tokens[first].start, tokens[last - 1].end))
    return [(0, spans[0][1]), *spans[1:-1], (spans[-1][0], len(sentence))]


def _subject(sentence: str, tokens: Sequence[Token], main: Part) -> tuple[str, str]:
    """The words of a clause before its first verb, and with it; without a known verb, up to its first content word.

    Both are empty if they are too long.
    """
    scope = range(main.first, min(main.last, main.first + _MAX_CARRIED + 1))
    verb = next((index for index in scope[1:] if tokens[index].is_verb), None)
    if verb is None:
        verb = last = next((index + 1 for index in scope if tokens[index].name), main.first + 1)
    else:
        last = verb + 1
    start = tokens[main.first].start
    subject, predicate = (sentence[start : tokens[index - 1].end].rstrip(",; ") for index in (verb, last))
    if len(predicate) > MAX_CARRIED_CHARS:
        return "", ""
    return subject, predicate
