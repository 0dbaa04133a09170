"""Reads statements one by one: which contexts support each alone, by which sentence, and what no context has of it.

A sentence may deny what a claim says, in the same words, or the other way round. "The period is not 30 days" has every
word of "The period is 30 days": function words, and so "not", are no terms. Contexts and answer are compared with a
reference answer in the same way (`with_reference`).
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cache, lru_cache
from typing import NamedTuple

from ragwatch.judges.claims.atomic_facts import facts_of, weakest
from ragwatch.judges.claims.claims import AnswerClaims
from ragwatch.judges.claims.limits import Check, check_claims, unlimited
from ragwatch.judges.claims.steps import actions, names_action
from ragwatch.judges.claims.words import TOKEN, fold, term, terms, word_set
from ragwatch.judges.lexical.facts import MONTH_TERMS, lowered
from ragwatch.judges.lexical.passages import PreparedPassage
from ragwatch.judges.lexical.rows import ClaimRow, Thresholds, comparison
from ragwatch.judges.lexical.tables import FittedTables
from ragwatch.judges.text_classifier import table_text
from ragwatch.model.evidence import Evidence, ReferenceClaim, UnreadReason
from ragwatch.model.sample import Context, Sample
from ragwatch.statistics.text.alphabet import visible_text

_REFERS = re.compile(r"\W*(?:(?:he|she|it|they|this|these|his|her|its|their)\b|the (?P<noun>[^\W\d_]+))", re.IGNORECASE)

_CAPITALISED = re.compile(r"(?<=[\w,] )[^\W\d_a-z][\w'’-]*")  # not the first word of a claim
NEARLY = 0.6
"""Recall of a claim in a sentence from which the two are compared: below, they may be about different things."""
_REACH = 6
"""Tokens after a negation within which the terms that it denies stand."""
_TERMS = 2
"""Number of them that are compared."""
_NEGATIONS = word_set("not never cannot no neither nor")
_CUE = re.compile(
    r"\b(?:not|never|cannot|no|none|neither|nor|nothing|nobody|nowhere|without|unable|lacks?|lacking|fail\w*"
    r"|free (?:from|of)|hardly|barely|rarely|seldom|few|unlike|refus\w+|rul\w+ out|declin\w+|avoid\w*|reject\w*"
    r"|den(?:y|ies|ied)|prevent\w*|prohibit\w*|forbid\w*|bann\w+|unless|except|instead|rather than)\b|n't\b"
)
_WEAKENED = word_set(
    "only just merely necessarily always all every longer more less least fewer earlier later until but matter sure"
    " doubt yet even mention exclusively solely"
)
"""After a negation, these make a statement of its own: "not only" and "no later than" deny nothing that follows."""
_INDIRECT = word_set("or if unless whether although though why because when")
"""Before a negation in the same clause: "guilty or not guilty", "even if it is not" deny nothing."""
_BEFORE = 6
_CLAUSES = re.compile(r"[,;] |,? (?:and|but|while|whereas|although|though) ")
_PAUSE = re.compile(r"[,;:.!?()]")


class StatementReading(NamedTuple):
    """What the contexts have of one statement."""

    cells: tuple[bool, ...]  # for each context, whether it alone supports the statement
    sentences: tuple[str, ...]  # for each context, the sentence that is nearest to it; empty for none
    missing: tuple[str, ...]  # words of the statement that no context has


def statements(
    sample: Sample, answer: AnswerClaims, tables: FittedTables, thresholds: Thresholds, check: Check
) -> list[StatementReading]:
    """For each claim, which contexts alone support it, and by which sentences.

    None does where it states a number that none states, where the nearest sentence denies it, or where it is an
    instruction whose action no context names (see `steps`). Sentences that go on about the same thing are read as facts
    of one sentence: a name that no context has counts against the weakest only.
    """
    compared = comparison(sample, tables, thresholds, check)
    rows = compared.rows(answer)
    held = frozenset().union(*(passage.terms for passage in compared.passages))
    steps = [actions(claim.words) if claim.sentence is None else () for claim in answer.claims]
    texts = [context.text for context in sample.contexts]
    words = [frozenset(terms(visible_text(text))) for text in texts] if any(steps) else [frozenset[str]()] * len(texts)

    def supports(row: ClaimRow, least: float, rank: int, sentence: str, verbs: Sequence[tuple[str, ...]]) -> bool:
        if min(row.alone[rank], least) < thresholds.support or denied(row, [sentence]):
            return False
        return not verbs or any(names_action(words[rank], action) for action in verbs)

    readings = []
    for row, support, verbs in zip(rows, _continued(rows), steps, strict=True):
        check()
        near = nearest_sentences(row, compared.texts, compared.passages)
        readings.append(
            StatementReading(
                tuple(supports(row, support, rank, sentence, verbs) for rank, sentence in enumerate(near)),
                tuple(nearest_sentences(row, texts, compared.passages)),
                _absent(sample.answer[row.claim.start : row.claim.end], held),
            )
        )
    return readings


def _absent(text: str, held: AbstractSet[str]) -> tuple[str, ...]:
    """Words of a text whose terms are not there, each once."""
    words = TOKEN.findall(visible_text(text))
    return tuple(dict.fromkeys(word for word in words if (name := term(fold(word))) and name not in held))


def _continued(rows: Sequence[ClaimRow]) -> list[float]:
    """Support of each row. Of sentences that go on about the same thing, names lower the weakest only."""
    groups: list[list[ClaimRow]] = []
    for row in rows:
        goes_on = groups and row.sentence is None and groups[-1][-1].sentence is None
        if goes_on and _goes_on(row.claim.words, groups[-1][-1].claim.words):
            groups[-1].append(row)
        else:
            groups.append([row])
    return [
        row.support
        if index == least
        else max(row.support, lowered(row.by_words, row.missing._replace(names=0, subjects=0)))
        for group in groups
        for least in [weakest([row.support for row in group])]
        for index, row in enumerate(group)
    ]


def _goes_on(words: str, before: str) -> bool:
    """Whether a sentence begins with a pronoun, or with "the" and a noun of the sentence before it."""
    match = _REFERS.match(words)
    return match is not None and (match["noun"] is None or term(fold(match["noun"])) in terms(before))


def nearest_sentences(row: ClaimRow, texts: Sequence[str], passages: Sequence[PreparedPassage]) -> list[str]:
    """The sentence of each context with the highest recall of the claim; empty where none has a term of it."""
    return [
        "" if match.sentence is None else text[slice(*passage.offsets[match.sentence])]
        for match, text, passage in zip(row.matches, texts, passages, strict=True)
    ]


def denied(row: ClaimRow, sentences: Sequence[str]) -> bool:
    """Whether all these sentences of contexts deny what a claim says nearly in their words.

    A bare yes or no is read in the words of its question (see `readable`), which says nothing.
    """
    if not sentences or row.claim.words.endswith("?") or max(match.sentence_recall for match in row.matches) < NEARLY:
        return False
    return all(reverses(row.claim.words, sentence) for sentence in sentences)


def misplaced(row: ClaimRow, passages: Sequence[PreparedPassage]) -> bool:
    """Whether a number of a claim, or of its sentence, stands only in contexts about something else.

    "Mill House opened in 1890" is not supported where one context says "Mill House opened in 1931" and another one
    dates another house to 1890: the context that holds the names of the claim says the same with another number.
    """
    own = {name for name in terms(row.claim.words) if name[0].isdigit()}
    return bool(own) and any(
        not own.isdisjoint(_misplaced(text, passages)) for text in {row.claim.words, row.whole.claim.words}
    )


def _misplaced(claim: str, passages: Sequence[PreparedPassage]) -> AbstractSet[str]:
    """Numbers that a context says of something else, where one that holds the names of the claim says another one."""
    words = set(terms(claim))
    numbers = {name for name in words if name[0].isdigit()}
    names = {name for word in _CAPITALISED.findall(claim) for name in terms(word)} - numbers - MONTH_TERMS
    said = words - numbers
    if not numbers or not names or not said - names:
        return frozenset()
    about = [passage for passage in passages if names <= passage.terms]
    if not any(
        said <= sentence and any(name[0].isdigit() for name in sentence - words)
        for passage in about
        for sentence in passage.sentences
    ):
        return frozenset()
    elsewhere = (sentence for passage in passages for sentence in passage.sentences if said - names <= sentence)
    return numbers.difference(*(passage.terms for passage in about)).intersection(frozenset().union(*elsewhere))


@cache
def _opposites() -> Mapping[str, AbstractSet[str]]:
    """For each word of a pair, the words that say the opposite."""
    opposites: dict[str, set[str]] = defaultdict(set)
    for line in table_text("opposites.txt").splitlines():
        if not line.startswith("#"):
            one, other = map(_form, line.split())
            opposites[one].add(other)
            opposites[other].add(one)
    return opposites


def _form(word: str) -> str:
    """A word without its ending; function words, such as before, stay as they are."""
    return term(word) or word


def _plain(text: str) -> str:
    return fold(text).replace("’", "'")


@lru_cache(maxsize=1 << 10)
def _denied_terms(text: str) -> list[tuple[str, ...]]:
    """The first terms after each negation of a text.

    >>> _denied_terms("It isn't free, and it does not ship on Sundays. No, not only there.")
    [('free',), ('ship', 'sunday')]
    """
    text, denied = _plain(text), []
    tokens = list(TOKEN.finditer(text))
    for place, token in enumerate(tokens):
        if token.group() not in _NEGATIONS and not token.group().endswith("n't"):
            continue
        before = {one.group() for one in tokens[max(0, place - _BEFORE) : place]}
        if before & _INDIRECT or any(one.group() == "until" for one in tokens[place:]):
            continue
        end = token.end()
        names: list[str] = []
        for other in tokens[place + 1 : place + 1 + _REACH]:
            if other.group() in _WEAKENED or _PAUSE.search(text[end : other.start()]) or len(names) == _TERMS:
                break
            end = other.end()
            names += [name for name in (term(other.group()),) if name]
        if names:
            denied.append(tuple(names))
    return denied


def reverses(claim: str, sentence: str) -> bool:
    """Returns whether one of the two denies what the other says without a word of denial.

    >>> reverses("The period is not 30 days.", "The period is 30 days.")
    True
    >>> reverses("The period is 30 days.", "The period is 30 days, not 14.")
    False
    >>> reverses("It is free.", "It is not only free but fast.")
    False
    >>> reverses("Sales rose by 5 %.", "Sales fell by 5 %."), reverses("It opens at 9.", "It opens at 9, closes at 5.")
    (True, False)
    >>> reverses("A copy is not enough.", "A copy is enough; the original is not required.")
    True
    """
    own, clauses = frozenset(terms(claim)), _CLAUSES.split(sentence)
    shared = [len(own.intersection(terms(clause))) for clause in clauses]
    near = [clause for clause, count in zip(clauses, shared, strict=True) if count >= max(shared) - 1]
    is_in_one = len(own.intersection(terms(sentence))) <= max(shared) + 1
    return _reverses(claim, sentence) or (is_in_one and all(_reverses(claim, clause) for clause in near))


def _reverses(claim: str, part: str) -> bool:
    return _denies(claim, part) or _denies(part, claim) or _opposes(claim, part)


def _opposes(claim: str, sentence: str) -> bool:
    """Whether a sentence has the opposite of a word of a claim instead of the word, and neither denies anything."""
    if _CUE.search(_plain(claim)) or _CUE.search(_plain(sentence)):
        return False
    own, other = (frozenset(map(_form, TOKEN.findall(_plain(text)))) for text in (claim, sentence))
    opposed = [_opposites()[word] for word in (own - other) & _opposites().keys()]
    return any(own.isdisjoint(opposites) and not other.isdisjoint(opposites) for opposites in opposed)


def _denies(one: str, other: str) -> bool:
    denied = _denied_terms(one)
    if not denied or _CUE.search(_plain(other)):
        return False
    held = frozenset(terms(other))
    return any(held.issuperset(names) for names in denied)


_COUNTERFACTUAL = re.compile(
    r"\bif (?!(?:i|we|you)\b)[^.!?]{1,200}\b(?:were|had been)\b[^.!?]{1,300}\b(?:would|could|might)\b"
    r"|\b(?:would|could|might)\b[^.!?]{1,300}\bif (?!(?:i|we|you)\b)[^.!?]{1,200}\b(?:were|had been)\b",
    re.IGNORECASE | re.DOTALL,
)
_CONDITIONAL = re.compile(
    r"\b(?:if|unless|would|could|might|may|should|were|hypothetical\w*|suppos\w+|assume\w*|assuming|assumption\w*"
    r"|theor\w+|possib\w+|potential\w*)\b",
    re.IGNORECASE,
)


def loses_condition(claim: str, sentences: Sequence[str]) -> bool:
    """Whether all sentences that a claim was taken from are conditional, and it is not.

    >>> loses_condition("It extends to 2.4 AU.", ["If it were binary, it could extend to 2.4 AU."])
    True
    >>> loses_condition("It could extend to 2.4 AU.", ["If it were binary, it could extend to 2.4 AU."])
    False
    """
    is_conditional = all(_COUNTERFACTUAL.search(sentence) for sentence in sentences)
    return bool(sentences) and is_conditional and not _CONDITIONAL.search(claim)


READING_VERSION = 17
"""Part of the judge's version. Increment it with every change of the results of this module, `reader`, `steps`,
`words` or `language`, because a gate must not compare figures of different versions."""


def with_reference(
    evidence: Evidence,
    sample: Sample,
    answer: AnswerClaims,
    tables: FittedTables,
    thresholds: Thresholds,
    *,
    max_claims: int | None = None,
    check: Check = unlimited,
) -> Evidence:
    """Add the comparison with the reference to the evidence; without a reference, return it as it is.

    Each fact of the reference is compared with each context and with the answer, each claim of the answer with the
    reference. A fact of the reference that no context supports was missed by retrieval.

    Raises:
        JudgeError: The reference has more than `max_claims` claims, or `check` stops the reading.
    """
    if not sample.reference or evidence.unread is UnreadReason.LANGUAGE:
        return evidence
    reference = facts_of(sample.reference, sample.question, max_claims=max_claims, check=check)
    check_claims(len(reference.claims), max_claims)
    expected = sample._replace(answer=sample.reference)

    def read(asked: Sample, claims: AnswerClaims) -> list[StatementReading]:
        return statements(asked, claims, tables, thresholds, check)

    rows = read(expected, reference)
    given = read(expected._replace(contexts=(Context(sample.answer),)), reference)
    confirmed = read(sample._replace(contexts=(Context(sample.reference),)), answer)
    return replace(
        evidence,
        claims=tuple(
            replace(claim, in_reference=one.cells[0]) for claim, one in zip(evidence.claims, confirmed, strict=True)
        ),
        reference=tuple(
            ReferenceClaim(
                sample.reference[start:end],
                start,
                end,
                row.cells,
                in_answer=said.cells[0],
                quotes=tuple(quote if cell else None for quote, cell in zip(row.sentences, row.cells, strict=True)),
                missing=row.missing,
            )
            for (start, end, *_), row, said in zip(reference.claims, rows, given, strict=True)
        ),
    )
