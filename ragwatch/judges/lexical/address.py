"""Classifies how an answer addresses its question, from the words that they share.

The measure is the share of the question's IDF weight that the answer covers: a term in the answer counts fully, a term
in a context that the answer was taken from counts `BY_CONTEXT`, because an answer rarely repeats the topic of the page.

| an answer that ...                                                                        | address       |
|-------------------------------------------------------------------------------------------|---------------|
| abstains                                                                                  | abstained     |
| claims nothing                                                                            | not at all    |
| covers `FULL` of the question, or is short and holds the kind of thing in question        | fully         |
| covers `PART` of it                                                                       | partially     |
| covers less, where a context covers `GATE` of it                                          | not at all    |
| covers less, and so does every context: they may put it in other words                    | unknown       |

It is at most partial when it lacks the kind of thing that the question asks for (a number for "how many", a time for
"when", a name for "who"), when it says nothing of one of several questions (`leaves_out`), and when it does not use the
top context though that covers the question better than every context that it uses.
"""

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from ragwatch.judges.claims.claims import AnswerClaims
from ragwatch.judges.claims.words import TOKEN, fold, identifiers, is_number, term
from ragwatch.judges.lexical.relevance import BY_ANSWER, ENOUGH, GATE, SHORT, question_share
from ragwatch.judges.lexical.rows import Comparison
from ragwatch.model.evidence import Address

BY_CONTEXT = 0.75
FULL = 0.45
PART = 0.15

_HOW_MANY = re.compile(r"\bhow (?:many|much|old|long|far|tall|big|high|large|deep)\b", re.IGNORECASE)
_WHEN = re.compile(r"^\W*(?:when\b(?! (?:i|you|we|using)\b)|(?:in |on |at )?(?:what|which) (?:year|date|day|month|time|century))", re.IGNORECASE)  # noqa: E501  # fmt: skip
_WHO = re.compile(r"^\W*(?:who|whom|whose)\b", re.IGNORECASE)
_AMOUNT = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozens?|hundreds?|thousands?|millions?"
    r"|billions?|half|twice|many|few|several|none|no|all|single|pair|couple|much|any|unlimited|long|short)\b",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"\d|\b(?:january|february|march|april|may|june|july|august|september|october|november|december|monday|tuesday"
    r"|wednesday|thursday|friday|saturday|sunday|century|spring|summer|autumn|fall|winter|morning|evening|night|noon"
    r"|today|yesterday|tomorrow|now|never|always|when|whenever|before|after|during|until|once|while|if|as|at|every)\b",
    re.IGNORECASE,
)
_PERSON = re.compile(
    r"\b(?:people|person|man|woman|men|women|users?|members?|team|anyone|everyone|nobody|customers?|administrators?)\b",
    re.IGNORECASE,
)


def kind_missing(question: str, answer: str) -> bool:
    """Whether the question asks for an amount, a time or a name, and the answer holds none.

    >>> kind_missing("How many moons are there?", "There are moons."), kind_missing("Who?", "Ada did.")
    (True, False)
    """
    if _WHO.search(question):
        has_name = any(word[0].isupper() and term(fold(word)) for word in TOKEN.findall(answer))
        return not has_name and _PERSON.search(answer) is None
    for question_pattern, answer_pattern in ((_HOW_MANY, _AMOUNT), (_WHEN, _TIME)):
        if question_pattern.search(question):
            return answer_pattern.search(answer) is None
    return False


_NEXT = re.compile(
    r"(?:[?;,]|\band\b)[\s,]*(?:and\s+|also\s+)*"
    r"(?=(?:what|who|whom|whose|when|where|which|how (?:much|many|long|old|far|often))\b)",
    re.IGNORECASE,
)


def questions_in(question: str) -> list[str]:
    """Returns the questions of which a question consists; only those that ask for a thing, not why or how.

    >>> questions_in("When does it open, and how much is a ticket?")
    ['When does it open', 'how much is a ticket?']
    >>> questions_in("What does a set of salt and pepper cost?")
    ['What does a set of salt and pepper cost?']
    """
    return [part for part in (one.strip() for one in _NEXT.split(question)) if part]


def leaves_out(question: str, answer: AbstractSet[str], sentences: Sequence[AbstractSet[str]], text: str) -> bool:
    """Whether an answer says nothing of one of several questions in a question.

    The sentences are those of contexts that the answer was taken from, as terms.
    """
    parts = questions_in(question)
    if len(parts) < 2:
        return False
    held = [frozenset(term(fold(word)) for word in TOKEN.findall(part)) - {""} for part in parts]
    numbers = {name for name in answer if is_number(name)}
    counting = sum(_asks_for_number(part) for part in parts)
    naming = sum(_WHO.search(part) is not None for part in parts)
    for place, (part, terms) in enumerate(zip(parts, held, strict=True)):
        if kind_missing(part, text):
            return True
        own = terms.difference(*(other for index, other in enumerate(held) if index != place))
        has_kind = len(numbers) >= counting if _asks_for_number(part) else naming == 1 and _WHO.search(part)
        if own and not has_kind and question_coverage(dict.fromkeys(own, 1.0), answer, sentences) < PART:
            return True
    return False


def _asks_for_number(question: str) -> bool:
    return _HOW_MANY.search(question) is not None or _WHEN.search(question) is not None


def question_coverage(
    question: Mapping[str, float], answer: AbstractSet[str], used: Sequence[AbstractSet[str]]
) -> float:
    """Share of the question's weight that the answer, or a context that it was taken from, covers."""
    own = question_share(question, answer, BY_ANSWER)
    best = max((question_share(question, answer | terms, BY_ANSWER) for terms in used), default=own)
    return own + BY_CONTEXT * (best - own)


def share_in_conversation(question: float | None, whole: float | None) -> float | None:
    """Combine the coverage of a question with that of the question as completed by the user's turns before.

    Covering the completed question alone is at most `PART`: an answer to the question before does as much.

    >>> share_in_conversation(0.0, 0.9), share_in_conversation(0.6, 0.4), share_in_conversation(None, 0.9)
    (0.15, 0.6, 0.9)
    """
    if question is None or whole is None:
        return whole
    return max(question, min(whole, PART))


def address(
    answer: AnswerClaims, used: Sequence[bool], carriers: Sequence[AbstractSet[int]], compared: Comparison
) -> Address | None:
    """Classify an answer; None when the question has no terms, or words cannot tell.

    `used` are the contexts that the answer was taken from, `carriers` the sentences of each context that carry it.
    """
    question, passages, tables = compared.question, compared.passages, compared.tables
    if answer.abstained:
        return Address.ABSTAINED
    if not question.text.strip() or answer.only_asks:
        return None
    if not answer.claims:
        return Address.NOT_AT_ALL
    text = " ".join(claim.words for claim in answer.sentences)
    own = frozenset(tables.terms(text)) | identifiers(text)
    sources = [passage.terms for passage, is_used in zip(passages, used, strict=True) if is_used]
    shares = [
        question_coverage(weights, own, sources) if weights else None
        for weights in (question.weights, question.whole_weights)
    ]
    share, covers = share_in_conversation(*shares), question.covers or ()
    if share is None:
        return None
    if share < PART and len(own) >= SHORT:
        return Address.NOT_AT_ALL if max(covers, default=GATE) >= GATE else None
    sentences = [passage.sentences[line] for passage, lines in zip(passages, carriers, strict=True) for line in lines]
    is_full = (share >= FULL or len(own) < SHORT) and not better_context_unused(covers, used)
    if tables.split is None and is_full:
        is_full = not (kind_missing(question.kind, text) or leaves_out(question.text, own, sentences, text))
    return Address.FULLY if is_full else Address.PARTIALLY


def better_context_unused(covers: Sequence[float], used: Sequence[bool]) -> bool:
    """Whether the top context is unused though it covers at least `ENOUGH` of the question, more than every used one.

    >>> better_context_unused([1.0, 0.5], [False, True]), better_context_unused([0.5, 0.5], [False, True])
    (True, False)
    """
    if not covers or used[0] or not any(used):
        return False
    return covers[0] >= ENOUGH and covers[0] > max(
        cover for cover, is_used in zip(covers, used, strict=True) if is_used
    )
