"""Protocols of judges, of the budget account that they reserve their cost in, and of probes.

Probes send canary queries to a retriever or to the whole service.
"""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ragwatch.errors import JudgeError
from ragwatch.model.budget import Cost
from ragwatch.model.evidence import Evidence
from ragwatch.model.quantities import Criterion, Quantity
from ragwatch.model.sample import Sample
from ragwatch.statistics.canary.definition import Retrieved
from ragwatch.statistics.verdict import Usage
from ragwatch.telemetry import Telemetry


class Judge(Protocol):
    """Reads one sample and returns evidence; scores are computed from it elsewhere."""

    name: str  # configured name, the label `judge`
    kind: str
    model: str  # the label `model`: name of the model, or version of the fitted tables
    version: str  # identifies kind, model and prompt (or weights): verdicts of different versions are never averaged
    concurrency: int  # samples read at a time

    def ready_in(self) -> float:
        """Return the seconds until it accepts calls; 0 when it does now. Until then draws stay pending."""

    async def read(self, sample: Sample) -> tuple[Evidence, Usage]:
        """Read the sample.

        Raises:
            JudgeError: The sample could not be read. If permanent, the reason is counted and the draw is settled as
                unjudged; otherwise (an outage, an exhausted budget) the draw returns to the queue.
        """

    async def close(self) -> None:
        """Close the clients."""


@dataclass(frozen=True, slots=True)
class Collected:
    """Result for one sample of a message batch."""

    # the evidence, or the error: a permanent one settles the draw, any other returns it to the queue
    result: Evidence | JudgeError
    usage: Usage | None  # what the call cost; None if unknown, in which case the worst case stays reserved


@runtime_checkable
class BatchJudge(Judge, Protocol):
    """A judge that can also read many samples in one message batch, within a day and at a lower price."""

    def seed(self) -> str:
        """Create a new seed for one batch.

        It also identifies the judge's version and quantities, so that replies to a different request are rejected.
        """

    async def reserve(self, sample: Sample, seed: str) -> int | Evidence:
        """Reserve the worst-case cost of reading a sample in a batch.

        Returns the reservation, or the evidence itself if no request is necessary.

        Raises:
            JudgeError: The sample cannot be read (permanent), or the budget is exhausted at present.
        """

    async def submit(self, samples: Mapping[str, Sample], seed: str) -> str | None:
        """Submit samples, by our ids. Returns the provider's id of the batch; None if its acceptance is unknown.

        Raises:
            JudgeError: The provider did not accept the batch, and nothing was paid.
        """

    async def ended(self, batch: str) -> bool:
        """Return whether every sample of a batch has a result.

        Raises:
            JudgeError: The status is not available at present.
        """

    def results(self, batch: str, samples: Mapping[str, Sample], seed: str) -> AsyncIterator[tuple[str, Collected]]:
        """Yield the results of these samples by our ids, in no particular order; results of other samples are skipped.

        Raises:
            JudgeError: The results cannot be read (to the end) at present.
        """

    def reads_again(self, sample: Sample, evidence: Evidence) -> bool:
        """Whether a suspected prompt injection makes a second reading necessary, without it and not in a batch."""

    async def confirm(self, sample: Sample, evidence: Evidence) -> Usage:
        """Read a sample a second time, with calls that are paid by themselves. Returns their usage.

        Raises:
            JudgeError: The readings differ (permanent), or the sample cannot be read a second time at present.
        """

    async def find(self, ids: Collection[str], since: float) -> str | None:
        """Return the provider's id of the batch with these ids, accepted since an instant; None if there is none.

        Raises:
            JudgeError: The list of batches is not available at present.
        """


class BudgetAccount(Protocol):
    """Budget of one judge: the worst case is reserved before a call, the actual cost settled after it."""

    async def reserve(self, worst: Cost) -> int:
        """Reserve the worst-case cost. Returns the id of the reservation.

        Raises:
            JudgeError: `over_budget`, not permanent: the spending caps do not allow it at present.
        """

    async def settle(self, reservation: int, actual: Cost) -> None:
        """Replace a reservation by the actual cost. A reservation that is never settled counts in full."""


@dataclass(frozen=True, slots=True)
class JudgeContext:
    """Dependencies that every judge gets, in addition to its options."""

    telemetry: Telemetry  # counts calls, tokens, cost and failures of the judge
    budget: BudgetAccount  # account in which cost is reserved
    clock: Callable[[], float]
    # quantities to be scored; evidence for others may be left out
    quantities: frozenset[Quantity] = frozenset(Quantity)
    # the configured criteria, of which `quantities` names those to be read; evidence has an entry for each
    criteria: tuple[Criterion, ...] = ()
    redact: Callable[[str], str] = str  # replaces PII and secrets in what a model replied

    @property
    def criteria_to_read(self) -> tuple[Criterion, ...]:
        """Criteria that a judge which reads criteria has to read."""
        return tuple(criterion for criterion in self.criteria if criterion.quantity in self.quantities)


class Probe(Protocol):
    """Sends queries to a retriever. Results are compared and counted in `statistics.canary`."""

    name: str  # configured name, usually that of the suite
    concurrency: int  # maximum number of concurrent queries; further ones wait inside `ask`

    async def ask(self, query: str, k: int) -> Retrieved:
        """Send a query for the top k passages.

        Does not raise: any error is returned as `Retrieved.failure`, so that one canary cannot affect another.
        """

    async def close(self) -> None:
        """Close connections."""


@runtime_checkable
class Oracle(Probe, Protocol):
    """A probe that can also send the contexts to answer from, to tell generator faults from retriever faults."""

    async def ask_with(self, query: str, contexts: Sequence[str]) -> Retrieved:
        """Return the service's answer to a query from these contexts, without retrieval. Does not raise."""
