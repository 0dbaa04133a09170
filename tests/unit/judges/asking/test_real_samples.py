"""Real samples: their pages render, and a reply that says what the embedded judge read parses back to its cells."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean

import pytest
from loopback.model import speak

from ragwatch.judges.claims.claims import claims_of
from ragwatch.judges.lexical.passages import context_text
from ragwatch.judges.lexical.reader import Thresholds, read
from ragwatch.judges.lexical.tables import shipped
from ragwatch.judges.llm.injection import is_prompt_injection
from ragwatch.judges.llm.reading import Reading
from ragwatch.model.quantity_row import Part
from ragwatch.model.sample import Context, Sample

pytestmark = pytest.mark.uncounted

DATA = Path(__file__).parents[5] / "shared" / "data" / "judge"
SETS = ("train/expertqa/all", "train/attributionbench/dev")
LIVE = frozenset(Part) - {Part.REFERENCE, Part.CRITERIA}
PEER_TOKENS = 11_314  # prompt of ragas for three metrics, characters / 4: shared/facts/performance.md


LIMITS = pytest.mark.parametrize("limit", [25, pytest.param(200, marks=pytest.mark.slow)])


def samples(name: str, limit: int) -> list[Sample]:
    """The first samples of a set; skipped with its name where it is absent."""
    path = DATA / f"{name}.jsonl"
    if not path.is_file():
        pytest.skip(f"needs ../shared/data/judge/{name}.jsonl")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[:limit]]
    return [Sample(row["id"], row["question"], tuple(map(Context, row["contexts"])), row["answer"]) for row in rows]


@pytest.mark.costly
@LIMITS
@pytest.mark.parametrize("name", SETS)
def test_cells_come_back(name: str, limit: int) -> None:
    """The contexts that support each claim are those of the reading that the reply was written from."""
    cells: list[bool] = []
    for sample in samples(name, limit):
        expected = read(sample, claims_of(sample.answer, sample.question), shipped(), Thresholds())
        inquiry = Reading(sample, parts=frozenset({Part.CLAIMS, Part.CONTEXTS}), reading="joint", seed=sample.id)
        inquiry.take([ask.check(speak(ask.user, ask.schema).text) for ask in inquiry.prompts()])
        found = inquiry.evidence()
        assert [(one.start, one.end) for one in found.claims] == [(one.start, one.end) for one in expected.claims]
        cells += [one.contexts == other.contexts for one, other in zip(found.claims, expected.claims, strict=True)]
        assert [one.relevant for one in found.contexts] == [bool(one.relevant) for one in expected.contexts]
        plain = [context_text(context.text) == context.text for context in sample.contexts]  # no marks of lists
        read_both = zip(found.contexts, expected.contexts, plain, strict=True)
        assert all(one.sentences == other.sentences for one, other, same in read_both if same and one.sentences)
    assert sum(cells) >= 0.99 * len(cells)  # the stand-in finds no quote in some odd text


@pytest.mark.costly
@LIMITS
@pytest.mark.parametrize("name", SETS)
def test_prompt_and_reply_are_small(name: str, limit: int) -> None:
    """At most a quarter of the peer's prompt and 600 tokens of reply on average; a full reply fits its limit."""
    prompts, replies = [], []
    for sample in samples(name, limit):
        (ask,) = Reading(sample, parts=LIVE, reading="joint", seed=sample.id).prompts()
        reply = json.dumps(json.loads(speak(ask.user, ask.schema).text), separators=(",", ":"))
        assert len(reply) / 3 <= ask.max_tokens
        prompts.append((len(ask.system) / 4, len(ask.user) / 4))
        replies.append(len(reply) / 4)
    system, user = (mean(column) for column in zip(*prompts, strict=True))
    print(f"{name}: system {system:.0f}, user {user:.0f}, reply {mean(replies):.0f} tokens of four characters")
    assert system + user <= PEER_TOKENS / 4
    assert mean(replies) <= 600


@pytest.mark.costly
@pytest.mark.parametrize("name", SETS)
def test_real_contexts_are_rarely_suspected(name: str) -> None:
    """Of real contexts at most one in a thousand looks like an order to a judge."""
    texts = {context.text for sample in samples(name, 2000) for context in sample.contexts}
    suspected = [text for text in texts if is_prompt_injection(text)]
    assert len(suspected) <= len(texts) / 1000
