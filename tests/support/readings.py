"""What the embedded judge reads in 200 answers: to be the same under every Python.

As a script it prints a line of JSON for each answer of `data/readings/answers.jsonl`, and one for redaction. After a
deliberate change of what is read or redacted:

    PYTHONPATH=tests .venv/bin/python -m support.readings > tests/data/readings/figures.jsonl

Nothing but the standard library, stdnum, `ragwatch.statistics`, `ragwatch.redaction` and `ragwatch.judges.lexical` is
imported here, so that `BARE` can run it under interpreters for which no packages are installed.
"""

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import stdnum

from ragwatch.judges.claims.atomic_facts import facts_of
from ragwatch.judges.claims.claims import AnswerClaims
from ragwatch.judges.claims.words import terms
from ragwatch.judges.lexical.features import claim_words, features, match
from ragwatch.judges.lexical.passages import passage
from ragwatch.judges.lexical.reader import read, relevance_of
from ragwatch.judges.lexical.rows import Thresholds
from ragwatch.judges.lexical.statements import with_reference
from ragwatch.judges.lexical.tables import FILES, parse
from ragwatch.model.sample import Context, Sample
from ragwatch.redaction.redactor import Redactor
from ragwatch.statistics.scores import score_all
from support.secret_examples import EXAMPLES

ROOT = Path(__file__).parents[2]
ANSWERS = ROOT / "tests" / "data" / "readings" / "answers.jsonl"
FIGURES = ANSWERS.with_name("figures.jsonl")

BARE = f"""
import sys, types
for name in ("judges", "judges.lexical"):  # without their kinds, which import what is not installed
    package = types.ModuleType("ragwatch." + name)
    package.__path__ = [{str(ROOT / "ragwatch")!r} + "/" + name.replace(".", "/")]
    sys.modules["ragwatch." + name] = package
stdnum = types.ModuleType("stdnum")  # pure Python, the one library of redaction
stdnum.__path__ = {list(map(str, stdnum.__path__))!r}
sys.modules["stdnum"] = stdnum
sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / "tests")!r}]
from support import readings
sys.stdout.writelines(readings.lines())
"""
"""Program for `python -I -S -c`: prints the lines with no package installed but stdnum."""

_TABLES = parse(*((ROOT / "ragwatch" / "judges" / "tables" / name).read_text(encoding="utf-8") for name in FILES))
_DIGITS = 9  # in what lies beyond, C libraries may differ


def lines() -> Iterator[str]:
    """What is read in each answer, and what redaction makes of the answers and of every example of a secret."""
    rows = ANSWERS.read_text(encoding="utf-8")
    for row in rows.splitlines():
        yield json.dumps(_reading(json.loads(row))) + "\n"
    texts = [text for examples in EXAMPLES.values() for text, _ in examples]
    redacted = [Redactor().redact(text) for text in (*texts, " ".join(texts), rows)]
    yield json.dumps({"id": "redaction", "digest": _digest(redacted)}) + "\n"


def _reading(row: dict[str, Any]) -> dict[str, Any]:
    contexts = tuple(map(Context, row["contexts"]))
    sample = Sample(row["id"], row["question"], contexts, row["answer"], reference=row.get("reference"))
    answer = facts_of(sample.answer, sample.question)
    evidence = read(sample, answer, _TABLES, Thresholds())
    evidence = with_reference(evidence, sample, answer, _TABLES, Thresholds())
    relevance = relevance_of(sample, answer, _TABLES) if contexts else []
    return {
        "id": sample.id,
        "claims": [[one.start, one.end, one.verdict, _short(one.support), one.cells] for one in evidence.claims],
        "contexts": [_short(one.relevance) for one in evidence.contexts],
        "address": evidence.address,
        "scores": {name: _short(score) for name, score in score_all(evidence).items() if score is not None},
        "digest": _digest([[said.words for said in answer.claims], _features(sample, answer), relevance]),
    }


def _features(sample: Sample, answer: AnswerClaims) -> list[tuple[float, ...]]:
    """The features of each claim: with all contexts together, and with each alone."""
    question = frozenset(terms(sample.question or ""))
    passages = [passage(context.text) for context in sample.contexts]
    rows = []
    for said in answer.claims:
        words = claim_words(said.words, _TABLES.rarity)
        matches = [match(words, one) for one in passages]
        rows += [features(words, some, question) for some in (matches, *([one] for one in matches))]
    return rows


def _digest(values: Any) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:12]


def _short(number: float | None) -> float | None:
    return None if number is None else round(number, _DIGITS)


if __name__ == "__main__":
    sys.stdout.writelines(lines())
