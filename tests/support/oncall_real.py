"""Traffic of real answers for replays: rows of labelled sets in `../shared/data`, drawn at random and broken."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from support.oncall_traffic import BREAK, Asked, Breakage, Traffic, own

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
SETS = {
    "clapnq": "relevance/clapnq/dev",
    "mtrag": "relevance/mtrag_answerability",
    "expertqa": "judge/train/expertqa/all",
    "halueval": "judge/train/halueval_qa/sample",
    "attribution": "judge/train/attributionbench/dev",
}
"""The set whose answers a route gives, by the name of the route."""
MAX_CHARS = 12_000
"""Rows with more text are left out, so that a small machine can judge many of them a second."""


class RealTraffic(Traffic):
    """An endless supply of log rows with real questions, contexts and answers; skips where the sets are missing."""

    def __init__(self, routes: Sequence[str], seed: int = 1) -> None:
        super().__init__(seed)
        self._rows = {route: rows_of(SETS[route]) for route in routes if route in SETS}

    def row(
        self, route: str, breakage: Breakage | None = None, *, noise: float = 0.1, cites: bool = False, tenant: str = ""
    ) -> str:
        """Return one line of a log: a row of the set of the route, or, for other routes, an answer about a place."""
        if route not in self._rows:
            return super().row(route, breakage, noise=noise, cites=cites, tenant=tenant)
        chance, rows = self._chance, self._rows[route]
        self._count += 1
        row, other = chance.sample(rows, 2)
        contexts, answer = list(row["contexts"]), row["answer"]
        if breakage is Breakage.INVENTION:
            answer = f"{other['answer']} {own(chance)}"
        elif breakage is Breakage.IRRELEVANT:
            contexts = other["contexts"]
        elif breakage is Breakage.STALE:
            digits = str.maketrans("123456789", "".join(chance.sample("123456789", 9)))
            contexts, answer = [text.translate(digits) for text in contexts], answer.translate(digits)
        elif breakage is Breakage.CUT:
            contexts = [text[:18] for text in contexts]
        elif breakage is not None:  # the answer is the same whatever was asked; without contexts, it is a refusal
            contexts = [] if breakage is Breakage.EMPTY else contexts
            answer = self._broken_answer(breakage)
        line = {
            "id": f"{self._seed}-{self._count}",
            "at": time.time(),
            "question": row["question"],
            "contexts": contexts,
            "answer": answer,
            "route": route,
        }
        return json.dumps(line)

    def _broken_answer(self, breakage: Breakage) -> str:
        """The answer of a breakage about a place."""
        place, *others = self._chance.sample(self._places, 5)
        return BREAK[breakage](Asked(place, others, self._chance))[1]


def labelled_rows(name: str) -> list[dict[str, Any]]:
    """Rows of one file, contexts filled in; skips the test where the data is not at hand."""
    path = DATA / f"{name}.jsonl"
    if not path.exists():
        pytest.skip(f"needs ../shared/data/{name}.jsonl")
    rows: list[dict[str, Any]] = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    documents: dict[str, dict[str, str]] = {}
    for row in rows:
        if "context_refs" in row:
            if row["docs"] not in documents:
                documents[row["docs"]] = json.loads((path.parent / row["docs"]).read_text(encoding="utf-8"))
            row["contexts"] = [documents[row["docs"]][key] for key in row["context_refs"]]
    return rows


def rows_of(name: str) -> list[Mapping[str, Any]]:
    """Answers of a set that have contexts."""
    kept: list[Mapping[str, Any]] = []
    for row in labelled_rows(name):
        size = len(row["answer"]) + sum(map(len, row["contexts"]))
        if row["contexts"] and row["answer"].strip() and size <= MAX_CHARS:
            kept.append(row)
    return kept
