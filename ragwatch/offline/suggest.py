"""Suggests canaries from judged traffic, as a first labelled set that a person reviews.

A question is suggested if people or, without labels, the judge found an answer fully supported and relevant, and the
judge recorded which contexts support it. Nothing is expected if the service declines to answer it, or if it is about a
time after the last update of the index. Follow-up questions are left out: a canary is asked without a conversation.
Contexts that the retriever never returned are in no canary; a person must review each one and add them.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum

from ragwatch.model.evidence import Address
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import SampleRecord
from ragwatch.offline.question_kinds import (
    AskedQuestion,
    QuestionKind,
    VocabularyCoverage,
    kinds_of,
    newest_date,
    relative_spread,
    vocabulary_coverage,
)
from ragwatch.statistics.canary.definition import (
    REDACTED,
    Canary,
    Category,
    Expected,
    Grade,
    canary_lines,
    comment_line,
    name_of,
)
from ragwatch.statistics.compare import key_of
from ragwatch.statistics.labels.label import Label
from ragwatch.statistics.text.phrases import is_abstention
from ragwatch.statistics.text.vocabulary import words_of
from ragwatch.statistics.verdict_line import VerdictRecord

RIGHT_FROM: Mapping[Quantity, float] = {Quantity.FAITHFULNESS: 0.95, Quantity.ANSWER_RELEVANCY: 1.0}
"""Scores from which an answer is right."""
MAX_SIMPLE_CONTEXTS = 2  # expected contexts of a simple question
MAX_CANDIDATES = 500  # of a kind other than head, the most frequent ones, from which suggestions are chosen
TAG = "suggested"
NO_LABELS: Mapping[str, Sequence[Label]] = {}
_PEOPLE, _JUDGE = "people", "judge"
_EDGE = frozenset({QuestionKind.ODD_PHRASING, QuestionKind.AMBIGUOUS, QuestionKind.MULTI_HOP})
_BY_PRIORITY = (
    QuestionKind.TEMPORAL,
    QuestionKind.NO_GOOD_ANSWER,
    QuestionKind.MULTI_HOP,
    QuestionKind.COMPARATIVE,
    QuestionKind.ODD_PHRASING,
    QuestionKind.AMBIGUOUS,
)


@dataclass(frozen=True, slots=True)
class CanarySuggestion:
    """A suggested canary."""

    canary: Canary
    weight: float
    answers: int
    faithfulness: float | None  # mean faithfulness of the answers that were found right; None if none has a score
    kind: QuestionKind = QuestionKind.OTHER  # the kind that it was chosen for
    why: tuple[str, ...] = ()  # reasons, one for each kind that it has
    right: int = 0  # number of answers that were found right
    by_people: int = 0  # of these, number that people, and not only a judge, found right


@dataclass(frozen=True, slots=True)
class Proposal:
    """Suggested canaries, and how far they cover the traffic."""

    suggestions: tuple[CanarySuggestion, ...]  # by kind, the most frequent question of each first
    coverage: VocabularyCoverage  # coverage of the vocabulary of all questions by these and by the known canaries
    questions: int
    head: int
    unanswered: int  # odd, ambiguous or multi-hop questions without an answer that was found right: label their answers


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer to a usable question; `right_by` is who found it right, and `used` the contexts that support it."""

    question: str
    used: tuple[Expected, ...]
    weight: float
    faithfulness: float | None
    right_by: str | None
    abstained: bool
    several: bool
    spread: float | None


def propose(
    verdicts: Iterable[tuple[VerdictRecord, SampleRecord | None]],
    *,
    known: Collection[str] = (),
    limit: int = 50,
    labels: Mapping[str, Sequence[Label]] = NO_LABELS,
    indexed: str | None = None,
) -> Proposal:
    """Suggests canaries from stored verdicts: half of them head questions, the others of every other kind in turn.

    A sample is None if it is no longer stored. Labels of people, by key of the sample, count and not the judge; `known`
    questions have a canary already; without `indexed` (YYYY-MM-DD) the newest date in the contexts is taken.
    """
    by_question: defaultdict[str, list[_Answer]] = defaultdict(list)
    newest: str | None = None
    for verdict, sample in verdicts:
        answer = None if sample is None else _answer(verdict, sample, labels.get(verdict.key, ()))
        if sample is not None and answer is not None:
            by_question[key_of(answer.question, "")].append(answer)
            texts = (context.get("text") or "" for context in sample.get("contexts", ()))
            newest = max((day for day in (newest, newest_date(texts)) if day is not None), default=None)
    asked = [_asked(answers) for answers in by_question.values()]
    kinds = kinds_of(asked, indexed or newest)
    known_keys = {key_of(question, "") for question in known}
    candidates, unanswered = [], 0
    for (key, answers), question, own in zip(by_question.items(), asked, kinds, strict=True):
        if key not in known_keys:
            candidate = _suggestion(answers, question, own)
            unanswered += candidate is None and bool(_EDGE.intersection(own))
            candidates += [(candidate, own)] if candidate is not None else []
    chosen = _with_unique_names(_chosen(candidates, asked, limit))
    queries = [*known, *(suggestion.canary.query for suggestion in chosen)]
    head = sum(QuestionKind.HEAD in own for own in kinds)
    return Proposal(tuple(chosen), vocabulary_coverage(asked, queries), len(asked), head, unanswered)


def _chosen(
    candidates: Sequence[tuple[CanarySuggestion, Mapping[QuestionKind, str]]],
    asked: Sequence[AskedQuestion],
    limit: int,
) -> list[CanarySuggestion]:
    """At most `limit` candidates: head questions up to half, then each other kind in turn, then frequent ones.

    Of a kind other than head, the question is chosen whose new words are most frequent in the traffic, so that the
    suggestions spread over its topics.
    """
    frequency: Counter[bytes] = Counter()
    for question in asked:
        frequency.update(dict.fromkeys(words_of(question.text), 1))
    order = sorted(candidates, key=lambda pair: (-pair[0].weight, pair[0].canary.query))
    left = {suggestion.canary.query: (suggestion, kinds) for suggestion, kinds in order}
    chosen: list[CanarySuggestion] = []
    covered: set[bytes] = set()

    def take(query: str, kind: QuestionKind) -> None:
        suggestion, _ = left.pop(query)
        chosen.append(replace(suggestion, kind=kind))
        covered.update(words_of(query))

    for query in [query for query, (_, kinds) in left.items() if QuestionKind.HEAD in kinds][: (limit + 1) // 2]:
        take(query, QuestionKind.HEAD)
    pools = {
        kind: [query for query, (_, kinds) in left.items() if kind in kinds][:MAX_CANDIDATES] for kind in _BY_PRIORITY
    }
    while len(chosen) < limit and any(pools.values()):
        for kind, queries in pools.items():
            queries[:] = [query for query in queries if query in left]
            if queries and len(chosen) < limit:
                new = {query: sum(frequency[word] for word in {*words_of(query)} - covered) for query in queries}
                take(max(queries, key=lambda query: new[query]), kind)
    for query in list(left)[: limit - len(chosen)]:
        take(query, QuestionKind.HEAD if QuestionKind.HEAD in left[query][1] else QuestionKind.OTHER)
    kinds_in_order = tuple(QuestionKind)
    chosen.sort(key=lambda one: (kinds_in_order.index(one.kind), -one.weight, one.canary.query))
    return chosen


def _answer(verdict: VerdictRecord, sample: SampleRecord, labels: Sequence[Label]) -> _Answer | None:
    question = sample.get("question")
    if not isinstance(question, str) or not question.strip() or REDACTED.search(question):
        return None  # a redacted question differs from the original query
    if sample.get("history"):
        return None  # a follow-up question may mean nothing without the turns before
    contexts = sample.get("contexts", ())
    used = dict.fromkeys(
        expected
        for context, read in zip(contexts, verdict.contexts, strict=False)
        if read.used and (expected := expected_context(context.get("id"), context.get("text"))) is not None
    )
    scores = [score for context in contexts if isinstance(score := context.get("score"), int | float)]
    right_by = _right_by(verdict, labels) if used else None
    supported = [set(claim.contexts) for claim in verdict.claims if claim.contexts]
    joint = any(claim.joint for claim in verdict.claims)
    needs_several = joint or (bool(supported) and not set.intersection(*supported))  # no context supports all claims
    return _Answer(
        question=" ".join(question.split()),
        used=tuple(used),
        weight=1.0 / (verdict.probability or 1.0),
        faithfulness=verdict.scores[Quantity.FAITHFULNESS],
        right_by=right_by,
        abstained=verdict.address == Address.ABSTAINED or is_abstention(sample.get("answer") or ""),
        several=right_by is not None and needs_several,
        spread=relative_spread(scores),
    )


def _right_by(verdict: VerdictRecord, labels: Sequence[Label]) -> str | None:
    """Who found an answer right: people, if they have scored it, else the judge; None if it was not found right."""
    by_people = False
    for quantity, least in RIGHT_FROM.items():
        by_label = mean_label(labels, quantity)
        by_people |= by_label is not None
        score = verdict.scores[quantity] if by_label is None else by_label
        if score is None or score < least:
            return None
    return _PEOPLE if by_people else _JUDGE


def _asked(answers: Sequence[_Answer]) -> AskedQuestion:
    texts = Counter(answer.question for answer in answers)
    spreads = [answer.spread for answer in answers if answer.spread is not None]
    return AskedQuestion(
        min(texts, key=lambda text: (-texts[text], text)),
        fsum(answer.weight for answer in answers),
        len(answers),
        abstained=sum(answer.abstained for answer in answers),
        several=sum(answer.several for answer in answers),
        spread=fsum(spreads) / len(spreads) if spreads else None,
    )


def expected_context(name: str | None, text: str | None, grade: int = 1) -> Expected | None:
    """Returns a context by its id, or by its text if there is no id and the text is not redacted."""
    level = Grade.HIGHLY_RELEVANT if grade >= Grade.HIGHLY_RELEVANT else Grade.RELEVANT
    if name:
        return Expected(str(name), None, level)
    return Expected(None, text, level) if text and text.strip() and not REDACTED.search(text) else None


def mean_label(labels: Iterable[Label], quantity: Quantity) -> float | None:
    """Returns the mean score by people; None if they gave none."""
    scores = [label.scores[quantity] for label in labels if quantity in label.scores]
    return fsum(scores) / len(scores) if scores else None


def _suggestion(
    answers: Sequence[_Answer], question: AskedQuestion, kinds: Mapping[QuestionKind, str]
) -> CanarySuggestion | None:
    """Returns the canary of one question, which expects the contexts of at least half of the answers found right.

    One without a good answer expects nothing; of any other, None if no answer was found right.
    """
    right = [answer for answer in answers if answer.right_by is not None]
    scores = [answer.faithfulness for answer in right if answer.faithfulness is not None]
    uses: Counter[Expected] = Counter(context for answer in right for context in answer.used)
    expected = tuple(sorted((one for one, count in uses.items() if 2 * count >= len(right)), key=lambda one: one.label))
    if QuestionKind.NO_GOOD_ANSWER in kinds or (QuestionKind.TEMPORAL in kinds and not expected):
        expected = ()
        category = Category.TEMPORAL if QuestionKind.TEMPORAL in kinds else Category.NEGATIVE
    elif not expected:
        return None
    else:
        simple = len(expected) <= MAX_SIMPLE_CONTEXTS and QuestionKind.MULTI_HOP not in kinds
        category = Category.SIMPLE_FACTUAL if simple else Category.COMPLEX_FACTUAL
        category = Category.COMPARATIVE if QuestionKind.COMPARATIVE in kinds else category
    return CanarySuggestion(
        Canary(name_of(question.text), question.text, expected, category, tags=(TAG,)),
        question.weight,
        question.answers,
        fsum(scores) / len(scores) if scores else None,
        why=tuple(f"{kind}: {reason}" for kind, reason in kinds.items()),
        right=len(right),
        by_people=sum(answer.right_by == _PEOPLE for answer in right),
    )


def _with_unique_names(suggestions: Iterable[CanarySuggestion]) -> list[CanarySuggestion]:
    """Renames canaries with equal names: `Is it on?` and `Is it on!` are two questions."""
    names: set[str] = set()
    renamed = []
    for suggestion in suggestions:
        name = name_of(suggestion.canary.query, names)
        names.add(name)
        renamed.append(replace(suggestion, canary=replace(suggestion.canary, name=name)))
    return renamed


def suite_text(proposal: Proposal) -> str:
    """Returns the suggestions as a suite file in YAML, with the figures of each suggestion in a comment.

    >>> one = CanarySuggestion(Canary("n", "Why?", (Expected("d1"),), tags=(TAG,)), 12.0, 3, 1.0, right=2, by_people=1)
    >>> print(suite_text(Proposal((one,), VocabularyCoverage(0.5, 1, 4), 2, 1, 0)), end="")
    # Suggested from judged traffic. Review each canary: keep it, correct what it expects, or delete it.
    # Contexts that the retriever never returned are missing: add them.
    # 2 questions, of which 1 make 80 % of the traffic. Suggestions by kind: other 1.
    # With the canaries there are, they hold 50 % of the words of the questions by occurrence, 1 of 4 distinct ones.
    items:
      # asked about 12 times; 3 judged answers, 2 found right (1 by people) with faithfulness 1.00
      - query: "Why?"
        name: "n"
        category: simple_factual
        tags: ["suggested"]
        expected:
          - id: "d1"
    """
    lines = [
        "# Suggested from judged traffic. Review each canary: keep it, correct what it expects, or delete it.",
        "# Contexts that the retriever never returned are missing: add them.",
        *(f"# {line}" for line in summary_lines(proposal)),
        "items:",
    ]
    for suggestion in proposal.suggestions:
        canary, answers, mean = suggestion.canary, suggestion.answers, suggestion.faithfulness
        people = f" ({suggestion.by_people} by people)" if suggestion.by_people else ""
        score = "" if mean is None else f" with faithfulness {mean:.2f}"
        right = f"{suggestion.right or 'none'} found right{people}{score}"
        lines += [
            f"  # asked about {suggestion.weight:.0f} times; {answers} judged answers, {right}",
            *(comment_line(reason) for reason in suggestion.why),
            *canary_lines(canary),
        ]
    return "\n".join(lines) + "\n"


def summary_lines(proposal: Proposal) -> list[str]:
    """Returns what a proposal covers, as lines for people."""
    counts = Counter(suggestion.kind for suggestion in proposal.suggestions)
    by_kind = ", ".join(f"{kind} {counts[kind]}" for kind in QuestionKind if counts[kind])
    coverage = proposal.coverage
    lines = [
        (
            f"{proposal.questions} questions, of which {proposal.head} make 80 % of the traffic. "
            f"Suggestions by kind: {by_kind or 'none'}."
        ),
    ]
    if coverage.share is not None:
        lines.append(
            f"With the canaries there are, they hold {coverage.share:.0%} of the words of the questions by occurrence, "
            f"{coverage.words} of {coverage.of} distinct ones.".replace("%", " %")
        )
    if proposal.unanswered:
        lines.append(
            f"{proposal.unanswered} odd, ambiguous or multi-hop questions have no answer that was found right: "
            "label some (ragwatch label)."
        )
    return lines
