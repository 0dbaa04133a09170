"""The matrix: checked replies to Evidence. Here a cell without a verbatim quote is thrown out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragwatch.core.evidence import Address, Claim, ClaimVerdict, ContextReading, Evidence, Need, ReferenceClaim
from ragwatch.judges.llm.prompt.parts import Part
from ragwatch.judges.llm.prompt.quotes import is_similar, is_verbatim, plain
from ragwatch.judges.llm.prompt.reply import ReplyRow
from ragwatch.judges.llm.prompt.units import Cut, SampleUnits


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """How one claim stands once its quotes are checked.

    Attributes:
        verdict: What the contexts say of it; a claim of the reference that any supports is supported.
        cells: The verbatim quote by rank of each context that supports it.
        against: A verbatim quote that contradicts it.
        refused: Contexts said to support it that hold none of the words quoted from them.
        other: Whether the other text (the reference, the answer) says it too.
    """

    verdict: ClaimVerdict = ClaimVerdict.NOT_IN_CONTEXT
    cells: Mapping[int, str] | None = None
    against: str | None = None
    refused: int = 0
    other: bool | None = None


def checked(row: ReplyRow, claim: str, units: SampleUnits) -> CheckedClaim:
    """What is left of a row about a claim when only verbatim quotes count.

    A supported claim whose quotes all fail is not in the context. One without any cell names nothing that could be
    checked, which is one refusal too. (Of a claim of the reference no verdict is asked: its cells are the verdict.)
    """
    held = {rank: plain(quote) for rank, quote in reversed(row.quotes) if _holds(units, rank, quote, claim)}
    if row.verdict is ClaimVerdict.CONTRADICTED:
        return CheckedClaim(row.verdict, against=next(iter(held.values()), None), other=row.other)
    if row.verdict is ClaimVerdict.NOT_IN_CONTEXT:
        return CheckedClaim(other=row.other)
    named = {rank for rank, _ in row.quotes}
    refused = len(named - held.keys()) or (row.verdict is not None and not named)
    verdict = ClaimVerdict.SUPPORTED if held else ClaimVerdict.NOT_IN_CONTEXT
    return CheckedClaim(verdict, held, refused=int(refused), other=row.other)


def _holds(units: SampleUnits, rank: int, quote: str, claim: str) -> bool:
    """Whether a context holds a quote. Words that speak to a judge speak for a claim only when they are about it."""
    if is_verbatim(quote, units.sober[rank]):
        return True
    return is_verbatim(quote, units.folded[rank]) and is_similar(plain(quote), claim)


def checked_all(rows: Sequence[ReplyRow], text: str, cuts: Sequence[Cut], units: SampleUnits) -> list[CheckedClaim]:
    """The same for all claims of a text."""
    return [checked(row, text[start:end], units) for row, (start, end) in zip(rows, cuts, strict=True)]


_WEIGHT = (ClaimVerdict.SUPPORTED, ClaimVerdict.CONTRADICTED, ClaimVerdict.NOT_IN_CONTEXT)


def merged(standings: Sequence[CheckedClaim]) -> CheckedClaim:
    """One claim read in several calls: supported where one context supports it, else contradicted where one does."""
    return CheckedClaim(
        min((each.verdict for each in standings), key=_WEIGHT.index, default=ClaimVerdict.NOT_IN_CONTEXT),
        {rank: quote for each in standings for rank, quote in (each.cells or {}).items()},
        next((each.against for each in standings if each.against), None),
        sum(each.refused for each in standings),
        next((each.other for each in standings if each.other is not None), None),
    )


@dataclass(frozen=True, slots=True)
class Findings:
    """All that the replies to one sample say. None: it was not asked for.

    Attributes:
        claims: A standing for each claim of the answer.
        useful: Number of useful sentences, by rank of a context.
        needs: Sub-questions, and whether the contexts answer them.
        address: How the answer addresses the question.
        reference: A standing for each claim of the reference.
    """

    claims: Sequence[CheckedClaim] | None = None
    useful: Mapping[int, int] | None = None
    needs: tuple[Need, ...] | None = None
    address: Address | None = None
    reference: Sequence[CheckedClaim] | None = None

    @property
    def refused(self) -> int:
        """Cells that were thrown out."""
        return sum(each.refused for each in (*(self.claims or ()), *(self.reference or ())))


def evidence_of(units: SampleUnits, wanted: frozenset[Part], known: Findings) -> Evidence:
    """The evidence on the wanted parts; what was not asked because it was known is filled in."""
    return Evidence(
        claims=_claims(units, known) if Part.CLAIMS in wanted else (),
        contexts=tuple(_context(units, rank, wanted, known) for rank in range(len(units.folded))),
        address=_address(units, known) if Part.ADDRESS in wanted else None,
        needs=known.needs,
        reads_claims=Part.CLAIMS in wanted,
        reference=_reference(units, wanted, known),
    )


def _claims(units: SampleUnits, known: Findings) -> tuple[Claim, ...]:
    standings = known.claims if known.claims is not None else [CheckedClaim()] * len(units.claims)
    rows = zip(units.claims, standings, strict=True)
    return tuple(
        Claim(
            text=units.sample.answer[start:end],
            start=start,
            end=end,
            verdict=standing.verdict,
            cells=_cells(units, standing),
            evidence=next(iter((standing.cells or {}).values()), standing.against),
            in_reference=standing.other,
        )
        for (start, end), standing in rows
    )


def _cells(units: SampleUnits, standing: CheckedClaim) -> tuple[bool, ...]:
    return tuple(rank in (standing.cells or {}) for rank in range(len(units.folded)))


def _context(units: SampleUnits, rank: int, wanted: frozenset[Part], known: Findings) -> ContextReading:
    if Part.CONTEXTS not in wanted:
        return ContextReading(relevant=None)
    useful = (known.useful or {}).get(rank, 0)
    return ContextReading(bool(useful), sentences=len(units.sentences[rank]), relevant_sentences=useful)


def _address(units: SampleUnits, known: Findings) -> Address | None:
    """As it was read; without a question only an abstention can be told."""
    return Address.ABSTAINED if known.address is None and units.abstained else known.address


def _reference(units: SampleUnits, wanted: frozenset[Part], known: Findings) -> tuple[ReferenceClaim, ...] | None:
    text, cuts = units.sample.reference, units.reference
    if Part.REFERENCE not in wanted or text is None or cuts is None:
        return None
    rows = zip(cuts, known.reference or (), strict=True)
    return tuple(
        ReferenceClaim(text[start:end], start, end, _cells(units, standing), standing.other)
        for (start, end), standing in rows
    )
