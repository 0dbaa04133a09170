"""Reading: the door of judges, and of the money that they spend."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from ragwatch.core.budget import Cost
from ragwatch.core.evidence import Evidence
from ragwatch.core.sample import Sample
from ragwatch.core.scores import Quantity
from ragwatch.core.verdict import Usage
from ragwatch.errors import JudgeError
from ragwatch.telemetry import Telemetry


class Judge(Protocol):
    """Reads one sample. It never scores.

    Attributes:
        name: Configured name, the label `judge`.
        kind: Its kind.
        model: What reads, as a label: a model's name, or the version of fitted tables.
        version: Kind, model and prompt (or weights) in one word: verdicts of different versions never share a mean.
        concurrency: Samples read at a time.
    """

    name: str
    kind: str
    model: str
    version: str
    concurrency: int

    def ready_in(self) -> float:
        """Seconds until it wants to be asked again; 0 when it is able now. While it is not, draws stay pending."""
        ...

    async def read(self, sample: Sample) -> tuple[Evidence, Usage]:
        """What the judge sees in the sample.

        Raises:
            JudgeError: It could not read it. Permanent: the reason is counted and the draw is settled as unjudged.
                Otherwise (an outage, no money at present) the draw goes back to the queue.
        """
        ...

    async def close(self) -> None:
        """Release clients."""
        ...


@dataclass(frozen=True, slots=True)
class Collected:
    """What came of one sample in a message batch.

    Attributes:
        found: What was read; or why nothing was: for good, or so that the draw goes back to the queue.
        usage: What it cost; None when nobody knows, and then the worst case stays set aside.
    """

    found: Evidence | JudgeError
    usage: Usage | None


class BatchJudge(Judge, Protocol):
    """A judge that also takes many samples at once, to be read within a day, for less money."""

    def seed(self) -> str:
        """A new seed for one batch. It tells what is asked as well, so that replies to anything else are not read."""
        ...

    async def reserve(self, sample: Sample, seed: str) -> int | Evidence:
        """Set aside what reading a sample in a batch costs at worst. The evidence itself where nothing is to be asked.

        Raises:
            JudgeError: It cannot be read (permanent), or there is no money at present.
        """
        ...

    async def submit(self, samples: Mapping[str, Sample], seed: str) -> str | None:
        """Send samples by ids of ours. Returns the provider's name for the batch; None when it may have it or not.

        Raises:
            JudgeError: The provider has it not, and nothing was paid.
        """
        ...

    async def ended(self, batch: str) -> bool:
        """Whether every sample of a batch has its result.

        Raises:
            JudgeError: It cannot be told at present.
        """
        ...

    def results(self, batch: str, samples: Mapping[str, Sample], seed: str) -> AsyncIterator[tuple[str, Collected]]:
        """Results of these samples by our ids, in no particular order; those of others are left out.

        Raises:
            JudgeError: They cannot be read (to the end) at present.
        """
        ...

    async def find(self, ids: Collection[str], since: float) -> str | None:
        """The provider's name for the batch that holds these ids, accepted since an instant; None when it has none.

        Raises:
            JudgeError: It cannot be told at present.
        """
        ...


class BudgetAccount(Protocol):
    """Money of one judge. The worst case is set aside before a call and the true price settled after it."""

    async def reserve(self, worst: Cost) -> int:
        """Set the worst case aside. Returns the reservation's number.

        Raises:
            JudgeError: `over_budget`, not permanent: the caps have no room for it at present.
        """
        ...

    async def settle(self, reservation: int, actual: Cost) -> None:
        """Replace what was set aside by what the call did cost. What is never settled counts in full."""
        ...


@dataclass(frozen=True, slots=True)
class JudgeContext:
    """What every judge is given beside its options.

    Attributes:
        telemetry: Counts calls, tokens, money and failures; each judge reports its own.
        budget: Where cost is reserved.
        clock: Seconds since the epoch.
        quantities: What its evidence is wanted for; it need not read the rest.
    """

    telemetry: Telemetry
    budget: BudgetAccount
    clock: Callable[[], float]
    quantities: frozenset[Quantity] = frozenset(Quantity)
