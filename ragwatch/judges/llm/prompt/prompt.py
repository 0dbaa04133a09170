"""One ask: the rubric, a page, the shape of the reply, and the check of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ragwatch.judges.llm.prompt import rubric
from ragwatch.judges.llm.prompt.marks import RandomMarks
from ragwatch.judges.llm.prompt.page import MarkedText, PromptPage, claims, listed, sentences
from ragwatch.judges.llm.prompt.parts import Part
from ragwatch.judges.llm.prompt.reply import NEEDS_MOST, PageIds, Reply, parse
from ragwatch.judges.llm.prompt.schema import PromptTurn, keys, schema
from ragwatch.judges.llm.prompt.units import SampleUnits


@dataclass(frozen=True, slots=True)
class Prompt:
    """What one call sends, and what its reply must be.

    Attributes:
        system: The rubric: the same for every sample of which the same parts are asked, so that it can be cached.
        user: The page.
        schema: JSON schema of the reply, static like the rubric.
        max_tokens: What a full reply takes at most, thinking not counted.
        check: Text of the reply to what `Inquiry.take` wants; raises `ReplyError` when it is not valid.
    """

    system: str
    user: str
    schema: Mapping[str, Any]
    max_tokens: int
    check: Callable[[str], object]


# Tokens of the pieces of a reply, on the high side: ids without vowels and JSON marks are dear.
_FRAME, _CLAIM, _CELL, _CONTEXT, _LINE, _NEED, _WORD = 60, 36, 48, 24, 8, 60, 10
_CELLS = 3  # contexts that support a claim: more is rare, and then others have fewer
_LINES = 12  # useful lines of a context, likewise


def make_prompt(
    units: SampleUnits,
    turn: PromptTurn,
    parts: frozenset[Part],
    marks: RandomMarks,
    *,
    ranks: Sequence[int] = (),
    needs: Sequence[str] = (),
) -> Prompt:
    """The ask about these parts, these contexts and these sub-questions. The first turn shows no contexts."""
    blocks = None if turn is PromptTurn.FIRST else tuple(_context(marks, units, rank) for rank in ranks)
    page = _page(units, marks, blocks, needs, compared=Part.REFERENCE in parts)
    names = _names(page, ranks)
    wanted = keys(turn, parts)
    return Prompt(
        system=rubric.system(turn, parts),
        user=page.render(),
        schema=schema(turn, parts),
        max_tokens=_max_tokens(wanted, names),
        check=partial(_check, wanted, names),
    )


def _check(wanted: Mapping[Part, Sequence[str]], names: PageIds, text: str) -> Reply:
    return parse(text, wanted, names)


def _page(
    units: SampleUnits,
    marks: RandomMarks,
    contexts: tuple[MarkedText, ...] | None,
    needs: Sequence[str],
    *,
    compared: bool,
) -> PromptPage:
    return PromptPage(
        fence=marks.fence,
        question=None if units.question is None else listed(marks, [units.question.strip()]),
        needs=listed(marks, needs) if needs else None,
        contexts=contexts,
        answer=claims(marks, units.sample.answer, units.claims),
        reference=claims(marks, units.sample.reference or "", units.reference or ()) if compared else None,
    )


def _context(marks: RandomMarks, units: SampleUnits, rank: int) -> MarkedText:
    return sentences(marks, units.sample.contexts[rank].text, units.sentences[rank])


def _names(page: PromptPage, ranks: Sequence[int]) -> PageIds:
    shown = page.contexts or ()
    return PageIds(
        claims=page.answer.ids,
        contexts={block.mark: block.ids for block in shown},
        ranks={block.mark: rank for block, rank in zip(shown, ranks, strict=True)},
        needs=page.needs.ids if page.needs else (),
        reference=page.reference.ids if page.reference else (),
    )


def _max_tokens(wanted: Mapping[Part, Sequence[str]], names: PageIds) -> int:
    cells = min(len(names.contexts), _CELLS)
    rows = len(names.claims) * (Part.CLAIMS in wanted) + len(names.reference) * (Part.REFERENCE in wanted)
    lines = sum(min(len(ids), _LINES) for ids in names.contexts.values())
    columns = (len(names.contexts) * _CONTEXT + lines * _LINE) * (Part.CONTEXTS in wanted)
    needs = (len(names.needs) or NEEDS_MOST) * _NEED * (Part.NEEDS in wanted)
    return _FRAME + rows * (_CLAIM + cells * _CELL) + columns + needs + _WORD * (Part.ADDRESS in wanted)
