"""Builds a prompt: rubric, page, JSON schema of the reply, and the check of the reply."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ragwatch.judges.llm import rubric
from ragwatch.judges.llm.page import PromptPage, RandomMarks, claims, numbered, sentences, unnumbered
from ragwatch.judges.llm.reply import MAX_NEEDS, PageIds, parse
from ragwatch.judges.llm.rubric import PromptTurn, keys, schema
from ragwatch.judges.llm.units import SampleUnits
from ragwatch.model.quantities import Criterion
from ragwatch.model.quantity_row import Part


@dataclass(frozen=True, slots=True)
class Prompt:
    """Request of one call, and the check of its reply."""

    system: str  # the rubric. It is the same for all samples with the same parts, so that it can be cached
    user: str
    schema: Mapping[str, object]  # JSON schema of the reply, static like the rubric
    max_tokens: int  # upper bound on the tokens of the reply, without thinking
    # parses the text of the reply for `Reading.take`; raises `ReplyError` when it is not valid
    check: Callable[[str], object]


# Tokens of the parts of a reply, rounded up: ids without vowels and JSON punctuation take many tokens.
_FRAME, _CLAIM, _CELL, _CONTEXT, _LINE, _NEED, _WORD = 60, 48, 48, 24, 8, 60, 10
_FACTS = 2  # entries of a claim: an upper bound on the mean
_CELLS = 3  # contexts that support a claim: an upper bound on the mean
_CRITERION = 60  # with a short quote
_LINES = 12  # useful lines of a context: an upper bound on the mean


def make_prompt(
    units: SampleUnits,
    turn: PromptTurn,
    parts: frozenset[Part],
    marks: RandomMarks,
    *,
    ranks: Sequence[int] = (),
    needs: Sequence[str] = (),
    criteria: tuple[Criterion, ...] = (),
) -> Prompt:
    """Build the prompt about these parts, contexts, sub-questions and criteria. The first turn shows no contexts."""
    sample = units.sample
    shown = [sentences(marks, sample.contexts[rank].text, units.sentences[rank]) for rank in ranks]
    page = PromptPage(
        fence=marks.fence,
        history=tuple((str(role), unnumbered(marks, text)) for role, text in units.history),
        question=None if units.question is None else numbered(marks, [units.question.strip()]),
        needs=numbered(marks, needs) if needs else None,
        contexts=None if turn is PromptTurn.FIRST else tuple(shown),
        answer=claims(marks, sample.answer, units.claims),
        reference=claims(marks, sample.reference or "", units.reference or ()) if Part.REFERENCE in parts else None,
    )
    ids = PageIds(
        claims=page.answer.ids,
        contexts={block.mark: block.ids for block in shown},
        ranks={block.mark: rank for block, rank in zip(shown, ranks, strict=True)},
        needs=page.needs.ids if page.needs else (),
        reference=page.reference.ids if page.reference else (),
        criteria=tuple(criterion.name for criterion in criteria),
    )
    reply_schema = schema(turn, parts, tuple(ids.criteria))
    return Prompt(
        system=rubric.system(turn, parts, with_history=bool(page.history), criteria=criteria),
        user=page.render(),
        schema=reply_schema,
        max_tokens=_max_tokens(keys(turn, parts), ids),
        check=partial(parse, schema=reply_schema, ids=ids),
    )


def _max_tokens(reply_keys: Mapping[Part, Sequence[str]], ids: PageIds) -> int:
    cells = min(len(ids.contexts), _CELLS)
    rows = len(ids.claims) * (Part.CLAIMS in reply_keys) + len(ids.reference) * (Part.REFERENCE in reply_keys)
    useful = sum(min(len(lines), _LINES) for lines in ids.contexts.values())
    columns = (len(ids.contexts) * _CONTEXT + useful * _LINE) * (Part.CONTEXTS in reply_keys)
    needs = (len(ids.needs) or MAX_NEEDS) * _NEED * (Part.NEEDS in reply_keys)
    criteria = len(ids.criteria) * _CRITERION * (Part.CRITERIA in reply_keys)
    words = _WORD * (Part.ADDRESS in reply_keys) + criteria
    return _FRAME + rows * _FACTS * (_CLAIM + cells * _CELL) + columns + needs + words
