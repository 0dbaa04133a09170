"""Evidence: the observations of a judge on one answer, without any score.

It is a matrix with a row per claim of the answer and a column per context, in the order of the retriever. Each object
validates its shape when it is created. For every judge the words mean the same:

- The *support set* of a claim is the smallest set of contexts that together support it; among equals the one with the
  better ranks (`smallest_support_set` computes it).
- A claim *uses* a context that is in its support set or, if the claim is not supported, from which it has what is
  specific to it: neither words of the question nor common ones. An answer that misquotes a context has used it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import combinations


class ClaimVerdict(StrEnum):
    """Whether the contexts together support or contradict a claim."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    NOT_IN_CONTEXT = "not_in_context"


class Address(StrEnum):
    """How the answer addresses the question."""

    FULLY = "fully"
    PARTIALLY = "partially"
    NOT_AT_ALL = "not_at_all"
    ABSTAINED = "abstained"


class Cell(StrEnum):
    """What a context is to a claim. An empty cell is None; a marked one is truthy.

    `alone`: it supports the claim without any other context. `jointly`: no context supports the claim alone, and this
    one belongs to its support set. `informed`: the claim is not supported, and its specific content comes from here.
    """

    ALONE = "alone"
    JOINTLY = "jointly"
    INFORMED = "informed"


class ShapeError(ValueError):
    """Evidence is inconsistent: an error of a judge or its parser, not of the answer."""


def _check_ratio(value: float | None, name: str) -> None:
    if value is not None and not 0.0 <= value <= 1.0:
        raise ShapeError(f"{name} must be in [0, 1], not {value}")


def _check_facts(facts: int) -> None:
    if facts < 1:
        raise ShapeError(f"a claim cannot count for {facts} facts")


@dataclass(frozen=True, slots=True)
class Claim:
    """One row: a claim, and what each context is to it; its verdict is given all contexts together."""

    text: str
    start: int | None  # offsets in the answer; None if the claim is no verbatim part of it
    end: int | None
    verdict: ClaimVerdict
    cells: tuple[Cell | None, ...]  # what each context is to it. True counts as `alone`, False as None
    support: float | None = None  # probability that the contexts together support it, if the judge gives one
    evidence: str | None = None  # the sentence that supports or contradicts it, if the judge quotes one
    in_reference: bool | None = None
    said_by_user: bool = False  # not in the contexts, but in an earlier turn of the user: no score counts it
    sentence: tuple[int, int] | None = None  # offsets of the sentence that it is a part of; None if it is a whole one
    facts: int = 1  # number of facts that it counts for, if a judge rules on a whole sentence

    def __post_init__(self) -> None:
        _check_ratio(self.support, "support")
        _check_facts(self.facts)
        if self.said_by_user and self.verdict is not ClaimVerdict.NOT_IN_CONTEXT:
            raise ShapeError(f"a claim that only repeats the user cannot be {self.verdict}")
        if (self.start is None) != (self.end is None):
            raise ShapeError("a claim has both offsets or none")
        if self.start is not None and self.end is not None and not 0 <= self.start < self.end:
            raise ShapeError(f"claim offsets {self.start}..{self.end} do not enclose text")
        object.__setattr__(self, "cells", tuple(map(_cell, self.cells)))
        _check_cells(self.cells, self.verdict)

    @property
    def contexts(self) -> tuple[int, ...]:
        """0-based ranks of the contexts that support it: each alone or, where none does, all of them jointly."""
        return _ranks(self.cells, _SUPPORTING)

    @property
    def support_set(self) -> tuple[int, ...]:
        """Ranks of the smallest set of contexts that support it; of several that do so alone, the best-ranked."""
        alone = _ranks(self.cells, (Cell.ALONE,))
        return alone[:1] or _ranks(self.cells, (Cell.JOINTLY,))

    @property
    def informed_by(self) -> tuple[int, ...]:
        """Ranks of the contexts that its specific content comes from, although nothing supports it."""
        return _ranks(self.cells, (Cell.INFORMED,))

    @property
    def uses(self) -> tuple[int, ...]:
        """Ranks of the contexts that it uses: its support set, or those that informed it."""
        return self.support_set or self.informed_by


def _cell(value: object) -> Cell | None:
    return Cell(value) if isinstance(value, str) else (Cell.ALONE if value else None)


_SUPPORTING = (Cell.ALONE, Cell.JOINTLY)


def _ranks(cells: tuple[Cell | None, ...], wanted: tuple[Cell, ...]) -> tuple[int, ...]:
    return tuple(rank for rank, cell in enumerate(cells) if cell in wanted)


def _check_cells(cells: tuple[Cell | None, ...], verdict: ClaimVerdict) -> None:
    marks = [cell for cell in cells if cell is not None]
    supporting = [cell for cell in marks if cell in _SUPPORTING]
    if supporting and verdict is not ClaimVerdict.SUPPORTED:
        raise ShapeError(f"a context supports the claim, yet its verdict is {verdict}")
    if len(supporting) < len(marks) and verdict is ClaimVerdict.SUPPORTED:
        raise ShapeError("a context only informed the claim, yet its verdict is supported")
    if cells and not marks and verdict is ClaimVerdict.SUPPORTED:
        raise ShapeError("the claim is supported, yet it has no support set")
    if Cell.JOINTLY in supporting and (Cell.ALONE in supporting or len(supporting) == 1):
        raise ShapeError("contexts support a claim jointly only if there are several, and none does so alone")


@dataclass(frozen=True, slots=True)
class ContextReading:
    """One column: whether a context is useful for the answer and how many of its sentences are; None if not read."""

    relevant: bool | None
    relevance: float | None = None
    sentences: int | None = None
    relevant_sentences: int | None = None

    def __post_init__(self) -> None:
        _check_ratio(self.relevance, "relevance")
        if (self.sentences is None) != (self.relevant_sentences is None):
            raise ShapeError("sentences and relevant_sentences are both counted or neither")
        if self.sentences is not None and not 0 <= (self.relevant_sentences or 0) <= self.sentences:
            raise ShapeError(f"{self.relevant_sentences} relevant of {self.sentences} sentences")


@dataclass(frozen=True, slots=True)
class Need:
    """A sub-question, and whether the contexts answer it."""

    text: str
    answerable: bool


@dataclass(frozen=True, slots=True)
class ReferenceClaim:
    """A claim of the reference (the known good answer), and where else it is found."""

    text: str
    start: int
    end: int
    cells: tuple[bool, ...]  # for each context, whether that context supports the claim
    in_answer: bool | None = None
    facts: int = 1
    quotes: tuple[str | None, ...] = ()  # for each context, the words there that support it, if quoted
    missing: tuple[str, ...] = ()  # what no context has of it: words of the claim, or the whole of it

    def __post_init__(self) -> None:
        _check_facts(self.facts)
        if not 0 <= self.start < self.end:
            raise ShapeError(f"offsets {self.start}..{self.end} do not enclose text of the reference")
        if self.quotes and len(self.quotes) != len(self.cells):
            raise ShapeError(f"{len(self.quotes)} quotes for {len(self.cells)} contexts")

    @property
    def supported(self) -> bool:
        """Whether a context supports it."""
        return any(self.cells)


@dataclass(frozen=True, slots=True)
class Citation:
    """A context that a sentence of the answer cites (see `statistics.text.citations`)."""

    context: int  # 0-based rank of the context; one that the sample does not have supports nothing
    start: int
    end: int
    claims: tuple[int, ...]
    supports: bool  # whether it is rightly cited: see `statistics.text.citations`

    def __post_init__(self) -> None:
        if self.context < 0 or not 0 <= self.start < self.end or not self.claims:
            raise ShapeError(f"a citation of context {self.context} at {self.start}..{self.end} for {self.claims}")


class CriterionAnswer(StrEnum):
    """Answer to the question of a criterion."""

    YES = "yes"
    NO = "no"
    DOES_NOT_APPLY = "does_not_apply"


@dataclass(frozen=True, slots=True)
class CriterionReading:
    """What a judge answers to a criterion (None if it reads none), and words of the sample that decide, verbatim."""

    name: str
    answer: CriterionAnswer | None
    quote: str | None = None


class UnreadReason(StrEnum):
    """Why a judge could not read an answer that it reads otherwise."""

    LANGUAGE = "language"
    SHORT_ANSWER = "short_answer"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that a judge read in one sample; rows are empty if the answer has no claims."""

    claims: tuple[Claim, ...]
    contexts: tuple[ContextReading, ...]
    address: Address | None = None
    needs: tuple[Need, ...] | None = None
    reads_contradiction: bool = True  # False if the judge cannot distinguish contradicted claims from unsupported ones
    reads_claims: bool = True  # False if the judge does not: their absence then does not describe the answer
    reference: tuple[ReferenceClaim, ...] | None = None  # its claims; None without a reference, or if not read
    unread: UnreadReason | None = None  # why claims could not be read (with `language`, nothing was)
    citations: tuple[Citation, ...] = ()  # what the answer cites, filled in from its text after the judge has read it
    instructions: tuple[str, ...] = ()  # suspected injections: some of `question`, `context`, `answer`, `history`
    criteria: tuple[CriterionReading, ...] = ()
    # ISO 639 code of the language that was read, where the judge's accuracy in it is not known: changes of such scores
    # are measured, a level is not. None in English, and for judges that do not tell
    language: str | None = None
    replies: tuple[str, ...] = field(default=(), compare=False)  # of a model, as text, in order

    def __post_init__(self) -> None:
        columns = len(self.contexts)
        for kind, claims in (("claim", self.claims), ("reference claim", self.reference or ())):
            for row, cells in enumerate(claim.cells for claim in claims):
                if len(cells) != columns:
                    raise ShapeError(f"{kind} {row} has {len(cells)} cells for {columns} contexts")

    @property
    def counted(self) -> tuple[Claim, ...]:
        """The claims that scores count: all except those that only repeat what the user stated."""
        return tuple(claim for claim in self.claims if not claim.said_by_user)

    @property
    def abstained(self) -> bool:
        """Whether the answer is an abstention ("I don't know")."""
        return self.address is Address.ABSTAINED

    @property
    def used(self) -> tuple[bool, ...]:
        """u_j: whether at least one claim uses context j."""
        used = {rank for claim in self.counted for rank in claim.uses}
        return tuple(rank in used for rank in range(len(self.contexts)))


EXHAUSTIVE = 3
"""Sets of up to this many contexts are tried exhaustively."""

CANDIDATES = 8
"""Number of contexts, the strongest ones, that these sets are taken from: at most 92 readings."""

MAX_READINGS = 64
"""Maximum number of readings of larger sets."""

Supports = Callable[[tuple[int, ...]], bool]
"""Whether a set of contexts, by rank in increasing order, supports a claim. More contexts never support it less."""


def smallest_support_set(strengths: Sequence[float | None], supports: Supports) -> tuple[int, ...]:
    """Return the ranks of the smallest set that supports a claim, in increasing order; empty if all together do not.

    Sets of up to `EXHAUSTIVE` of the `CANDIDATES` strongest contexts are tried, small ones and better ranks first; then
    contexts are added, strongest first, until they suffice, and what is not necessary is removed, worst ranks first.
    Such a set need not be the smallest, but no member is superfluous, unless that took more than `MAX_READINGS`
    readings to see. `strengths`: how far each context alone supports the claim; None for one that has nothing of it.
    """
    known = [(-strength, rank) for rank, strength in enumerate(strengths) if strength is not None]
    order = [rank for _, rank in sorted(known)]
    candidates = sorted(order[:CANDIDATES])
    for size in range(1, EXHAUSTIVE + 1):
        for ranks in combinations(candidates, size):
            if supports(ranks):
                return ranks
    if len(order) <= EXHAUSTIVE or not supports(tuple(sorted(order))):
        return ()
    low, high = EXHAUSTIVE, len(order)  # lengths of beginnings of `order`: one too short, and one that suffices
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if supports(tuple(sorted(order[:middle]))) else (middle, high)
    kept = tuple(sorted(order[:high]))
    for rank in kept[::-1][:MAX_READINGS]:
        fewer = tuple(other for other in kept if other != rank)
        if supports(fewer):
            kept = fewer
    return kept


def support_cells(contexts: int, alone: Sequence[int], together: Sequence[int]) -> tuple[Cell | None, ...]:
    """Return the cells of a supported claim: of the ranks that support it alone, else of its support set."""
    marked = set(alone or together)
    mark = Cell.ALONE if alone or len(marked) == 1 else Cell.JOINTLY
    return tuple(mark if rank in marked else None for rank in range(contexts))


def informed_cells(contexts: int, informed: Sequence[int]) -> tuple[Cell | None, ...]:
    """Return the cells of a claim that is not supported, and whose specific content comes from these ranks."""
    return tuple(Cell.INFORMED if rank in informed else None for rank in range(contexts))
