"""A stand-in for a model: it reads the page and replies in the shape that was asked for, as a test tells it to."""

import json
from collections.abc import Callable
from typing import Any, Literal

from loopback.page import Line, parse, text_of

from ragwatch.judges.llm.prompt import Prompt
from ragwatch.judges.llm.reading import Reading
from ragwatch.model.evidence import Evidence
from ragwatch.model.quantity_row import Part
from ragwatch.model.sample import Context, Sample

LIVE = frozenset(Part) - {Part.REFERENCE, Part.CRITERIA}
Quote = Callable[[str, str], str | None]


class Paper:
    """A page as a model sees it.

    Attributes:
        claims: Numbered lines of the answer.
        reference: Numbered lines of the reference.
        needs: Numbered lines of the sub-questions.
        contexts: Lines of each context, by its id.
    """

    def __init__(self, page: str) -> None:
        seen = parse(page)
        self.claims = [line for line in seen.answer if line.numbered]
        self.reference = [line for line in seen.reference if line.numbered]
        self.needs, self.contexts = seen.needs, dict(seen.contexts)

    def context(self, mark: str) -> str:
        """The text of one context."""
        return text_of(self.contexts[mark])


class Model:
    """Replies to an ask.

    Args:
        quote: (claim, context) to the words of the context that support the claim; None where nothing does.
        address: The word for `address`.
        needs: Sub-questions, where they are not on the page.
    """

    def __init__(self, quote: Quote, *, address: str = "fully", needs: tuple[str, ...] = ("When?",)) -> None:
        self.quote = quote
        self.address = address
        self.needs = needs

    def reply(self, ask: Prompt) -> dict[str, Any]:
        """A reply with every key that the schema wants, and no other."""
        paper = Paper(ask.user)
        found: dict[str, Any] = {}
        properties: Any = ask.schema["properties"]
        for part, shape in properties.items():
            if part == Part.ADDRESS:
                found[part] = self.address
                continue
            wanted = shape["items"]["properties"]
            entries = getattr(self, f"_{part}")(paper)
            found[part] = [{key: value for key, value in each.items() if key in wanted} for each in entries]
            assert all(set(each) == set(wanted) for each in found[part])
        return found

    def _claims(self, paper: Paper) -> list[dict[str, Any]]:
        return [
            {
                "id": claim.id,
                "cells": (cells := self._cells(claim, paper)),
                "verdict": "supported" if cells else "not_in_context",
                "in_reference": "yes" if any(claim.meant == each.meant for each in paper.reference) else "no",
            }
            for claim in paper.claims
        ]

    def _facts(self, _: Paper) -> list[dict[str, Any]]:
        return []

    _reference_facts = _facts

    def _reference(self, paper: Paper) -> list[dict[str, Any]]:
        return [
            {
                "id": claim.id,
                "cells": self._cells(claim, paper),
                "in_answer": "yes" if any(claim.meant == each.meant for each in paper.claims) else "no",
            }
            for claim in paper.reference
        ]

    def _cells(self, claim: Line, paper: Paper) -> list[dict[str, str]]:
        quotes = {mark: self.quote(claim.meant, paper.context(mark)) for mark in paper.contexts}
        return [{"context": mark, "quote": quote} for mark, quote in quotes.items() if quote is not None]

    def _contexts(self, paper: Paper) -> list[dict[str, Any]]:
        return [
            {"id": mark, "useful": [line.id for line in found if line.numbered and self._useful(line, paper)]}
            for mark, found in paper.contexts.items()
        ]

    def _useful(self, line: Line, paper: Paper) -> bool:
        return any(self.quote(claim.meant, line.meant) is not None for claim in paper.claims)

    def _needs(self, paper: Paper) -> list[dict[str, Any]]:
        if paper.needs:
            return [{"id": line.id, "answered": "yes" if paper.contexts else "no"} for line in paper.needs]
        return [{"question": need, "answered": "yes" if paper.contexts else "no"} for need in self.needs]

    def read(self, inquiry: Reading) -> Evidence:
        """The whole conversation."""
        while asks := inquiry.prompts():
            inquiry.take([ask.check(json.dumps(self.reply(ask))) for ask in asks])
        return inquiry.evidence()


def copied(claim: str, context: str) -> str | None:
    """The claim's own words, where the context holds them."""
    return claim if claim.rstrip(".") in context else None


HONEST = Model(copied)
"""A model that calls supported what a context says in the same words."""


def ask_about(
    question: str | None,
    answer: str,
    *contexts: str,
    parts: frozenset[Part] | None = None,
    reading: Literal["joint", "isolated"] = "joint",
    seed: str = "seed",
    **of_sample: Any,
) -> Reading:
    """Begin about a question, an answer and contexts; `of_sample` are a reference, a history."""
    sample = Sample("s", question, tuple(map(Context, contexts)), answer, **of_sample)
    wanted = parts if parts is not None else LIVE if sample.reference is None else frozenset(Part) - {Part.CRITERIA}
    return Reading(sample, parts=wanted, reading=reading, seed=seed)
