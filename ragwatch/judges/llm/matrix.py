"""Converts checked replies to Evidence. A cell of the matrix without a verbatim quote is rejected.

What each context is to a claim is decided from its quotes as the other judges decide it (`CellReader`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from ragwatch.judges.claims.words import identifiers, terms
from ragwatch.judges.lexical.features import ClaimWords, claim_words, informed_by
from ragwatch.judges.lexical.tables import shipped
from ragwatch.judges.llm.quotes import (
    carries,
    content_of,
    folded,
    is_similar,
    is_verbatim,
    left_out,
    locate,
    quoted_text,
    shares_words,
)
from ragwatch.judges.llm.reply import ClaimRows, ReplyRow
from ragwatch.judges.llm.units import Cut, SampleUnits
from ragwatch.model.evidence import (
    Address,
    Cell,
    Claim,
    ClaimVerdict,
    ContextReading,
    CriterionAnswer,
    CriterionReading,
    Evidence,
    Need,
    ReferenceClaim,
    informed_cells,
    support_cells,
)
from ragwatch.model.quantity_row import Part
from ragwatch.statistics.text.alphabet import visible_text

_ALMOST_ALL = 0.9
"""If one context has this share of what all quoted contexts share with a claim, each of them supports it alone."""
_MOST = 2.0 / 3.0
"""The same where the reply says so. With less, each has but a part of the claim, whatever the reply says."""


@dataclass(frozen=True)
class CellReader:
    """Reads the cells of the claims of one sample. Isolated: each context was read alone, so a quoted one supports."""

    units: SampleUnits
    isolated: bool

    def cells(
        self,
        claim: str,
        quotes: Mapping[int, str],
        *,
        supported: bool,
        jointly: bool | None,
        informed: Mapping[int, str],
    ) -> tuple[Cell | None, ...]:
        """Cells of a claim.

        Args:
            claim: Its text.
            quotes: The verbatim quote of each context that supports it.
            supported: Its verdict.
            jointly: Whether the reply says that only several contexts together support it; None if it does not say.
            informed: The verbatim quote of each context that the reply takes an unsupported claim to be taken from. One
                that has no word of the claim beyond those of the question does not count.
        """
        ranks, contexts = sorted(quotes), len(self.units.folded)
        if supported:
            least = _ALMOST_ALL if jointly is None else _MOST
            alone = self.isolated or (not jointly and self._one_suffices(claim, ranks, least))
            return support_cells(contexts, ranks if alone else (), ranks)
        words = _words(claim)
        specific = words.rarity.keys() - self._question
        if named := [rank for rank, quote in informed.items() if specific & _terms(quote)]:
            return informed_cells(contexts, named)
        shared = [words.rarity.keys() & names for names in self._contexts]
        return informed_cells(contexts, informed_by(words, shared, self._question))

    def _one_suffices(self, claim: str, ranks: Sequence[int], share: float) -> bool:
        """Whether one of the quoted contexts has this share of what they together share with the claim.

        If none has, the reply quotes them because only together they support the claim.
        """
        if len(ranks) == 1:
            return True
        rarity = _words(claim).rarity
        union: frozenset[str] = frozenset().union(*(self._contexts[rank] for rank in ranks))
        least = share * _weight(rarity, union)
        return any(_weight(rarity, self._contexts[rank]) >= least for rank in ranks)

    @cached_property
    def _contexts(self) -> list[frozenset[str]]:
        return [_terms(context.text) for context in self.units.sample.contexts]

    @cached_property
    def _question(self) -> frozenset[str]:
        return _terms(self.units.question or "")


def _terms(text: str) -> frozenset[str]:
    text = visible_text(text)
    return frozenset(terms(text)) | identifiers(text)


def _words(claim: str) -> ClaimWords:
    return claim_words(visible_text(claim), shipped().rarity)


def _weight(rarity: Mapping[str, float], names: frozenset[str]) -> float:
    return math.fsum([weight for name, weight in rarity.items() if name in names])


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """A claim, or a fact of one, whose quotes were checked."""

    # verdict of the contexts; a claim of the reference is supported if any context supports it
    verdict: ClaimVerdict = ClaimVerdict.NOT_IN_CONTEXT
    # verbatim quotes, by rank of the contexts that support the claim
    cells: Mapping[int, str] = field(default_factory=dict)
    against: str | None = None  # a verbatim quote that contradicts the claim
    rejected_quotes: int = 0  # contexts whose quotes were all rejected
    other: bool | None = None  # whether the other text (the reference, the answer) states the claim too
    cut: Cut = (0, 0)  # where it stands: (start, end) in the answer or the reference
    jointly: bool | None = None  # whether only several of these together support it; None if the reply does not say
    # verbatim quotes, by rank of the contexts that a claim that is not supported seems to be taken from
    informed: Mapping[int, str] = field(default_factory=dict)
    # whether the reply reports a line as a whole: then its verdict is that of every fact of the line
    whole: bool = False

    def weight(self, facts: Mapping[Cut, int]) -> int:
        """Number of facts that it counts for, given that of each line."""
        return facts[self.cut] if self.whole else 1


def _check_row(row: ReplyRow, claim: str, units: SampleUnits) -> CheckedClaim:
    """Check the quotes of a row about a claim. Only verbatim quotes count.

    Where the sample may address the judge, the quoted contexts must also carry what is specific to the claim.
    A supported claim whose quotes are all rejected is not in the context. A supported claim without any cell counts as
    one rejected quote. (A row about a claim of the reference has no verdict: its cells are the verdict.)
    """
    verbatim = {
        rank: quoted_text(quote) for rank, quote in reversed(row.quotes) if _is_valid(units, rank, quote, claim)
    }
    if units.suspected and not carries([units.sample.contexts[rank].text for rank in verbatim], claim, units.question):
        verbatim = {}
    if row.verdict is ClaimVerdict.CONTRADICTED:
        against = next(iter(verbatim.values()), None)
        return CheckedClaim(row.verdict, against=against, other=row.other, informed=verbatim)
    if row.verdict is ClaimVerdict.NOT_IN_CONTEXT:
        return CheckedClaim(other=row.other, informed=verbatim)
    quoted = {rank for rank, _ in row.quotes}
    rejected = len(quoted - verbatim.keys()) or (row.verdict is not None and not quoted)
    verdict = ClaimVerdict.SUPPORTED if verbatim else ClaimVerdict.NOT_IN_CONTEXT
    return CheckedClaim(verdict, verbatim, rejected_quotes=int(rejected), other=row.other, jointly=row.jointly)


def _is_valid(units: SampleUnits, rank: int, quote: str, claim: str) -> bool:
    """Whether a quote is verbatim in a context and shares words with the claim.

    A quote from a prompt injection must also be similar to the claim. Between languages there are no words to share.
    """
    text = quoted_text(quote)
    if rank not in units.foreign and not shares_words(text, claim, units.question):
        return False
    if is_verbatim(quote, units.without_injections[rank]):
        return True
    return is_verbatim(quote, units.folded[rank]) and is_similar(text, claim)


def checked_claims(
    units: SampleUnits, text: str, cuts: Sequence[Cut], replies: Sequence[Sequence[ClaimRows] | None]
) -> list[CheckedClaim] | None:
    """Check what each call says of the claims of a text, and merge the calls; None if none was about them."""
    calls = [
        [_check_claim(facts, text, cut, units) for facts, cut in zip(rows, cuts, strict=True)]
        for rows in replies
        if rows is not None
    ]
    if len(calls) == 1:
        return [fact for facts in calls[0] for fact in facts]
    return [fact for claim in zip(*calls, strict=True) for fact in _merge_facts(claim)] if calls else None


def _check_claim(rows: ClaimRows, text: str, cut: Cut, units: SampleUnits) -> list[CheckedClaim]:
    """Check the rows about one claim.

    A fact that does not stand in the claim makes it one claim again, with the worst of its verdicts. A supported fact
    that adds nothing to those before it does not count, and what no fact says is a fact that nothing supports.
    """
    start, end = cut
    claim = text[start:end]
    if not any(row.fact for row in rows):
        return [replace(_check_row(row, claim, units), cut=cut, whole=True) for row in rows]
    spans = {span: row for row in rows if (span := locate(row.fact, claim)) is not None}
    facts: list[CheckedClaim] = []
    if len(spans) == len(rows):
        said: set[str] = set()
        for span in sorted(spans):
            fact = claim[slice(*span)]
            checked = replace(_check_row(spans[span], fact, units), cut=(start + span[0], start + span[1]))
            content = content_of(fact)
            if content - said or (content and checked.verdict is not ClaimVerdict.SUPPORTED):
                facts.append(checked)
            said |= content
    if not facts:
        return [replace(_worst([_check_row(row, claim, units) for row in rows]), cut=cut)]
    other = None if rows[0].other is None else False
    gaps = [CheckedClaim(other=other, cut=(start + first, start + last)) for first, last in left_out(claim, [*spans])]
    return sorted([*facts, *gaps], key=lambda checked: checked.cut)


_PRECEDENCE = (ClaimVerdict.SUPPORTED, ClaimVerdict.CONTRADICTED, ClaimVerdict.NOT_IN_CONTEXT)
_SEVERITY = (ClaimVerdict.CONTRADICTED, ClaimVerdict.NOT_IN_CONTEXT, ClaimVerdict.SUPPORTED)


def _worst(facts: Sequence[CheckedClaim]) -> CheckedClaim:
    """The facts of a claim as one: contradicted if any is, supported if all are."""
    verdict = min((fact.verdict for fact in facts), key=_SEVERITY.index)
    cells = {rank: quote for fact in facts for rank, quote in fact.cells.items()}
    return CheckedClaim(
        verdict,
        cells if verdict is ClaimVerdict.SUPPORTED else {},
        next((fact.against for fact in facts if fact.against), None),
        sum(fact.rejected_quotes for fact in facts),
        None if facts[0].other is None else all(fact.other for fact in facts),
        informed={rank: quote for fact in facts for rank, quote in (fact.informed or fact.cells).items()},
    )


def _merge_facts(calls: Sequence[Sequence[CheckedClaim]]) -> list[CheckedClaim]:
    """Merge several calls about one claim, whose facts are those of the call that distinguishes most.

    What another call says of a fact is what it says of its own fact that shares most text with it.
    """
    finest = max(calls, key=len)

    def nearest(facts: Sequence[CheckedClaim], cut: Cut) -> CheckedClaim:
        return max(facts, key=lambda fact: min(fact.cut[1], cut[1]) - max(fact.cut[0], cut[0]))

    facts = [
        replace(_merge([nearest(call, fact.cut) for call in calls]), rejected_quotes=0, cut=fact.cut) for fact in finest
    ]
    rejected = sum(fact.rejected_quotes for call in calls for fact in call)
    return [replace(facts[0], rejected_quotes=rejected), *facts[1:]]


def _merge(claims: Sequence[CheckedClaim]) -> CheckedClaim:
    """Merge several calls about one claim: supported if any supports it, else contradicted if any does."""
    return CheckedClaim(
        min((claim.verdict for claim in claims), key=_PRECEDENCE.index, default=ClaimVerdict.NOT_IN_CONTEXT),
        {rank: quote for claim in claims for rank, quote in claim.cells.items()},
        next((claim.against for claim in claims if claim.against), None),
        sum(claim.rejected_quotes for claim in claims),
        next((claim.other for claim in claims if claim.other is not None), None),
        informed={rank: quote for claim in claims for rank, quote in claim.informed.items()},
        whole=all(claim.whole for claim in claims),
    )


@dataclass(frozen=True, slots=True)
class Findings:
    """Contents of all replies about one sample. None: the part was not requested."""

    claims: Sequence[CheckedClaim] | None = None  # the checked claims of the answer, or facts of them
    useful: Mapping[int, int] | None = None  # number of useful sentences, by rank of a context
    needs: tuple[Need, ...] | None = None
    address: Address | None = None
    reference: Sequence[CheckedClaim] | None = None
    isolated: bool = False  # whether each context was read in a call of its own
    criteria: Sequence[tuple[CriterionAnswer, str]] = ()  # answer and quote, not checked, of each criterion in order

    @property
    def rejected_quotes(self) -> int:
        """Number of rejected cells."""
        return sum(claim.rejected_quotes for claim in (*(self.claims or ()), *(self.reference or ())))


def evidence_of(
    units: SampleUnits, requested: frozenset[Part], findings: Findings, criteria: Sequence[str] = ()
) -> Evidence:
    """Build the evidence on the requested parts and criteria. Parts that needed no call are filled in."""
    address = findings.address
    if address is None and units.abstained:  # without a question only an abstention can be detected
        address = Address.ABSTAINED
    return Evidence(
        claims=_claims(units, findings) if Part.CLAIMS in requested else (),
        contexts=tuple(_context(units, rank, requested, findings) for rank in range(len(units.folded))),
        address=address if Part.ADDRESS in requested else None,
        needs=findings.needs,
        reads_claims=Part.CLAIMS in requested,
        reference=_reference(units, findings) if Part.REFERENCE in requested else None,
        criteria=tuple(
            CriterionReading(name, answer, _verbatim(units, quote))
            for name, (answer, quote) in zip(criteria, findings.criteria, strict=False)
        ),
    )


def _verbatim(units: SampleUnits, quote: str) -> str | None:
    """The text of a quote that stands in the answer, a context or the question; None for any other."""
    text = quoted_text(quote)
    places = (units.sample.answer, units.question or "")
    if text and any(is_verbatim(quote, place) for place in (*map(folded, places), *units.folded)):
        return text
    return None


def _claims(units: SampleUnits, findings: Findings) -> tuple[Claim, ...]:
    """The claims of the answer. A line that is reported as a whole counts as many facts as it is split into elsewhere.

    Otherwise the lines that a reply splits, because something in them is not supported, would weigh more than others.
    """
    checked = findings.claims
    if checked is None:
        checked = [CheckedClaim(cut=cut, whole=True) for cut in units.claims]
    reader = CellReader(units, findings.isolated)
    return tuple(
        Claim(
            text=units.sample.answer[slice(*claim.cut)],
            start=claim.cut[0],
            end=claim.cut[1],
            verdict=claim.verdict,
            cells=reader.cells(
                units.sample.answer[slice(*claim.cut)],
                claim.cells,
                supported=claim.verdict is ClaimVerdict.SUPPORTED,
                jointly=claim.jointly,
                informed=claim.informed,
            ),
            evidence=next(iter(claim.cells.values()), claim.against),
            in_reference=claim.other,
            said_by_user=claim.verdict is ClaimVerdict.NOT_IN_CONTEXT and units.repeats_user(claim.cut),
            sentence=units.line_of(claim.cut),
            facts=claim.weight(units.facts),
        )
        for claim in checked
    )


def _context(units: SampleUnits, rank: int, requested: frozenset[Part], findings: Findings) -> ContextReading:
    if Part.CONTEXTS not in requested:
        return ContextReading(relevant=None)
    useful = (findings.useful or {}).get(rank, 0)
    return ContextReading(bool(useful), sentences=len(units.sentences[rank]), relevant_sentences=useful)


def _reference(units: SampleUnits, findings: Findings) -> tuple[ReferenceClaim, ...] | None:
    text = units.sample.reference
    if text is None:
        return None
    return tuple(
        ReferenceClaim(
            text[slice(*claim.cut)],
            *claim.cut,
            tuple(rank in claim.cells for rank in range(len(units.folded))),
            claim.other,
            claim.weight(units.reference_facts),
            quotes=tuple(claim.cells.get(rank) for rank in range(len(units.folded))),
            missing=() if claim.cells else (text[slice(*claim.cut)],),
        )
        for claim in findings.reference or ()
    )
