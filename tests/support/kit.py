"""Builders and stand-ins shared by all tests: real values with one line each, ports played from a script."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from ragwatch.model.evidence import Address, Cell, Claim, ClaimVerdict, ContextReading, Evidence, Need
from ragwatch.model.sample import Context, Draw, Sample
from ragwatch.pipeline.sampling_control import InMemoryBudget
from ragwatch.ports import Admission, Assignment, Batch, JudgeContext, Rejection
from ragwatch.statistics.sampling import key_of
from ragwatch.statistics.snapshot import Lag
from ragwatch.statistics.tally import Tallies
from ragwatch.statistics.verdict import NO_USAGE, Reading, Unjudged, UnjudgedReason, Usage, Verdict, judged
from ragwatch.statistics.verdict_line import VerdictRecord, parse_verdict_line, verdict_line
from ragwatch.telemetry import Telemetry

AT = 1_700_000_000.0
JUDGE = "embedded"


def a_sample(name: str = "r1", *, contexts: Sequence[Any] = ("Cats purr.", "Dogs bark."), **parts: Any) -> Sample:
    """A question about cats, answered from the first of two contexts."""
    found = tuple(Context(each) if isinstance(each, str) else each for each in contexts)
    sample = Sample(name, "What do cats do?", found, "Cats purr.", at=AT, route="search")
    return sample._replace(**parts)


def a_draw(name: str = "r1", *, probability: float = 1.0, at: float = AT, route: str = "search", **parts: Any) -> Draw:
    """The draw of `a_sample(name, **parts)` from source `app`."""
    return Draw(key_of("app", name), a_sample(name, at=at, **parts), "app", route, probability, at)


def a_claim(cells: Iterable[int] = (1, 0), verdict: str | None = None, **parts: Any) -> Claim:
    """A claim supported by the contexts whose cell is 1; without one it is not in the context."""
    row = tuple(Cell.ALONE if cell else None for cell in cells)
    word = verdict or ("supported" if any(row) else "not_in_context")
    return replace(Claim("Cats purr.", None, None, ClaimVerdict(word), row), **parts)


def an_evidence(
    *rows: Any, relevant: Any = (True, False), needs: Any = None, address: str | None = "fully", **parts: Any
) -> Evidence:
    """Evidence of two contexts, the first of which is relevant, and claims given as rows of cells."""
    claims = tuple(row if isinstance(row, Claim) else a_claim(row) for row in rows)
    found = Evidence(
        claims,
        tuple(ContextReading(each) for each in relevant),
        None if address is None else Address(address),
        None if needs is None else tuple(Need("why?", each) for each in needs),
    )
    return replace(found, **parts)


def a_reading(judge: str = JUDGE, version: str = "scripted-1", usage: Usage = NO_USAGE) -> Reading:
    """A reading by the scripted judge."""
    return Reading(judge, "scripted", version, 0.25, usage)


def a_verdict(draw: Draw | None = None, evidence: Evidence | None = None, reading: Reading | None = None) -> Verdict:
    """A good answer, judged."""
    return judged(draw or a_draw(), reading or a_reading(), evidence or an_evidence((1, 0)))


def an_unjudged(draw: Draw | None = None, reason: str = "timeout", reading: Reading | None = None) -> Verdict:
    """A draw that no judge could read."""
    return Unjudged(draw or a_draw(), reading or a_reading(), UnjudgedReason(reason), "no answer")


def a_stored_line(verdict: Verdict | None = None, **parts: Any) -> dict[str, Any]:
    """A verdict line with the fields that a store adds."""
    verdict = verdict or a_verdict()
    draw = verdict.draw
    place = {"key": draw.key, "judge_name": verdict.reading.judge, "route": draw.route, "at": draw.at}
    place |= {"probability": draw.probability, "trace_id": draw.sample.trace_id}
    return verdict_line(verdict) | place | parts


def a_record(verdict: Verdict | None = None, **parts: Any) -> VerdictRecord:
    """A verdict as a store returns it."""
    return parse_verdict_line(a_stored_line(verdict, **parts))


def an_admission(
    *draws: Draw, judges: Sequence[str] = (JUDGE,), cursor: str = "1", tallies: Tallies | None = None
) -> Admission:
    """The admission of these draws for these judges."""
    pairs = [(draw, tuple(Assignment(judge, draw.probability) for judge in judges)) for draw in draws]
    return Admission("app", "log", cursor, pairs, Counter() if tallies is None else tallies)


def a_line(name: str, **parts: Any) -> bytes:
    """A line of a log in the canonical shape."""
    return orjson.dumps(a_sample(name).to_record() | parts)


def a_batch(*lines: bytes, cursor: str = "1", rejections: Sequence[Rejection] = (), **parts: Any) -> Batch:
    """Consecutive lines of one stream."""
    offsets = [sum(len(each) + 1 for each in lines[:index]) for index in range(len(lines))]
    found = Batch("log", "app.jsonl", lines, offsets, range(1, len(lines) + 1), cursor, rejections)
    return replace(found, **parts)


class Clock:
    """Seconds since the epoch, wound by hand."""

    def __init__(self, now: float = AT) -> None:
        self.now = now

    def __call__(self) -> float:
        """The time it shows."""
        return self.now


def a_judge_context(
    telemetry: Telemetry | None = None, clock: Callable[[], float] | None = None, **parts: Any
) -> JudgeContext:
    """A JudgeContext with an unlimited budget."""
    return JudgeContext(telemetry or Telemetry(), InMemoryBudget(), clock or Clock(), **parts)


class ScriptedJudge:
    """A judge that does, by sample id, what a script holds: returns evidence, raises an error, awaits a call."""

    kind = "scripted"

    def __init__(self, script: Mapping[str, Any] | None = None, *, name: str = JUDGE, concurrency: int = 4) -> None:
        self.name, self.model, self.version, self.concurrency = name, "script", "scripted-1", concurrency
        self.script = dict(script or {})
        self.asked: list[str] = []
        self.tired = 0.0

    def ready_in(self) -> float:
        """What the test has set."""
        return self.tired

    async def read(self, sample: Sample) -> tuple[Evidence, Usage]:
        """What the script holds for this sample; else that its first context supports the answer."""
        self.asked.append(sample.id)
        found = self.script.get(sample.id)
        if isinstance(found, BaseException):
            raise found
        if callable(found):
            found = await found()
        return found or an_evidence((1, 0)), Usage(10, 5, 0.001)

    async def close(self) -> None:
        """Nothing is held."""


class ListSource:
    """A source over a list of batches. Repeats one until it is committed."""

    def __init__(self, batches: Sequence[Batch], name: str = "app") -> None:
        self.name, self.batches, self.committed = name, list(batches), 0

    def resume(self, cursors: Mapping[str, str]) -> None:
        """Every test begins with the first batch."""

    def read(self) -> Batch | None:
        """The first batch that was not committed."""
        return self.batches[self.committed] if self.committed < len(self.batches) else None

    def commit(self, batch: Batch) -> None:
        """Move on."""
        assert batch is self.batches[self.committed]
        self.committed += 1

    def lag(self) -> Lag:
        """Batches not committed."""
        return Lag(len(self.batches) - self.committed, None)

    def close(self) -> None:
        """Nothing is held."""
