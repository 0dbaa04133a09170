"""Converts checked replies to Evidence. A cell of the matrix without a verbatim quote is rejected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragwatch.core.evidence import Address, Claim, ClaimVerdict, ContextReading, Evidence, Need, ReferenceClaim
from ragwatch.judges.llm.prompt.parts import Part
from ragwatch.judges.llm.prompt.quotes import is_similar, is_verbatim, quoted_text, shares_words
from ragwatch.judges.llm.prompt.reply import ReplyRow
from ragwatch.judges.llm.prompt.units import Cut, SampleUnits


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """A claim whose quotes were checked.

    Attributes:
        verdict: Verdict of the contexts; a claim of the reference is supported if any context supports it.
        cells: Verbatim quotes, by rank of the contexts that support the claim.
        against: A verbatim quote that contradicts the claim.
        rejected_quotes: Contexts whose quotes were all rejected.
        other: Whether the other text (the reference, the answer) states the claim too.
    """

    verdict: ClaimVerdict = ClaimVerdict.NOT_IN_CONTEXT
    cells: Mapping[int, str] | None = None
    against: str | None = None
    rejected_quotes: int = 0
    other: bool | None = None


def check_row(row: ReplyRow, claim: str, units: SampleUnits) -> CheckedClaim:
    """Check the quotes of a row about a claim. Only verbatim quotes count.

    A supported claim whose quotes are all rejected is not in the context. A supported claim without any cell counts as
    one rejected quote. (A row about a claim of the reference has no verdict: its cells are the verdict.)
    """
    verbatim = {
        rank: quoted_text(quote) for rank, quote in reversed(row.quotes) if _is_valid(units, rank, quote, claim)
    }
    if row.verdict is ClaimVerdict.CONTRADICTED:
        return CheckedClaim(row.verdict, against=next(iter(verbatim.values()), None), other=row.other)
    if row.verdict is ClaimVerdict.NOT_IN_CONTEXT:
        return CheckedClaim(other=row.other)
    quoted = {rank for rank, _ in row.quotes}
    rejected = len(quoted - verbatim.keys()) or (row.verdict is not None and not quoted)
    verdict = ClaimVerdict.SUPPORTED if verbatim else ClaimVerdict.NOT_IN_CONTEXT
    return CheckedClaim(verdict, verbatim, rejected_quotes=int(rejected), other=row.other)


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


def check_rows(rows: Sequence[ReplyRow], text: str, cuts: Sequence[Cut], units: SampleUnits) -> list[CheckedClaim]:
    """Check the rows about all claims of a text."""
    return [check_row(row, text[start:end], units) for row, (start, end) in zip(rows, cuts, strict=True)]


_PRECEDENCE = (ClaimVerdict.SUPPORTED, ClaimVerdict.CONTRADICTED, ClaimVerdict.NOT_IN_CONTEXT)


def merge(claims: Sequence[CheckedClaim]) -> CheckedClaim:
    """Merge several calls about one claim: supported if any supports it, else contradicted if any does."""
    return CheckedClaim(
        min((claim.verdict for claim in claims), key=_PRECEDENCE.index, default=ClaimVerdict.NOT_IN_CONTEXT),
        {rank: quote for claim in claims for rank, quote in (claim.cells or {}).items()},
        next((claim.against for claim in claims if claim.against), None),
        sum(claim.rejected_quotes for claim in claims),
        next((claim.other for claim in claims if claim.other is not None), None),
    )


@dataclass(frozen=True, slots=True)
class Findings:
    """Contents of all replies about one sample. None: the part was not requested.

    Attributes:
        claims: The checked claims of the answer.
        useful: Number of useful sentences, by rank of a context.
        needs: Sub-questions, and whether the contexts answer them.
        address: How the answer addresses the question.
        reference: The checked claims of the reference.
    """

    claims: Sequence[CheckedClaim] | None = None
    useful: Mapping[int, int] | None = None
    needs: tuple[Need, ...] | None = None
    address: Address | None = None
    reference: Sequence[CheckedClaim] | None = None

    @property
    def rejected_quotes(self) -> int:
        """Number of rejected cells."""
        return sum(claim.rejected_quotes for claim in (*(self.claims or ()), *(self.reference or ())))


def evidence_of(units: SampleUnits, requested: frozenset[Part], findings: Findings) -> Evidence:
    """Build the evidence on the requested parts. Parts that needed no call are filled in."""
    return Evidence(
        claims=_claims(units, findings) if Part.CLAIMS in requested else (),
        contexts=tuple(_context(units, rank, requested, findings) for rank in range(len(units.folded))),
        address=_address(units, findings) if Part.ADDRESS in requested else None,
        needs=findings.needs,
        reads_claims=Part.CLAIMS in requested,
        reference=_reference(units, requested, findings),
    )


def _claims(units: SampleUnits, findings: Findings) -> tuple[Claim, ...]:
    checked = findings.claims if findings.claims is not None else [CheckedClaim()] * len(units.claims)
    rows = zip(units.claims, checked, strict=True)
    return tuple(
        Claim(
            text=units.sample.answer[start:end],
            start=start,
            end=end,
            verdict=claim.verdict,
            cells=_cells(units, claim),
            evidence=next(iter((claim.cells or {}).values()), claim.against),
            in_reference=claim.other,
        )
        for (start, end), claim in rows
    )


def _cells(units: SampleUnits, claim: CheckedClaim) -> tuple[bool, ...]:
    return tuple(rank in (claim.cells or {}) for rank in range(len(units.folded)))


def _context(units: SampleUnits, rank: int, requested: frozenset[Part], findings: Findings) -> ContextReading:
    if Part.CONTEXTS not in requested:
        return ContextReading(relevant=None)
    useful = (findings.useful or {}).get(rank, 0)
    return ContextReading(bool(useful), sentences=len(units.sentences[rank]), relevant_sentences=useful)


def _address(units: SampleUnits, findings: Findings) -> Address | None:
    """The address in the replies; without a question only an abstention can be detected."""
    return Address.ABSTAINED if findings.address is None and units.abstained else findings.address


def _reference(units: SampleUnits, requested: frozenset[Part], findings: Findings) -> tuple[ReferenceClaim, ...] | None:
    text, cuts = units.sample.reference, units.reference
    if Part.REFERENCE not in requested or text is None or cuts is None:
        return None
    rows = zip(cuts, findings.reference or (), strict=True)
    return tuple(
        ReferenceClaim(text[start:end], start, end, _cells(units, claim), claim.other) for (start, end), claim in rows
    )
