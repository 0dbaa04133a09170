"""Protocols of what only some kinds have: attributes of judges, sources and options. Use them with `isinstance`."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, runtime_checkable

from ragwatch.formats.log_reader import LogReader, RecordRules
from ragwatch.model.budget import Cost
from ragwatch.model.sample import Sample
from ragwatch.ports.rows import Part
from ragwatch.ports.sources import Batch, GrpcListener, Handler
from ragwatch.ports.storage import SavedState, Store
from ragwatch.statistics.tally import Tallies


@runtime_checkable
class HasFallback(Protocol):
    """A judge that reads with the lexical judge if its model cannot be loaded."""

    fallback: str | None
    """Why the lexical judge reads instead; None if the model is loaded."""


@runtime_checkable
class SupportsProbe(Protocol):
    """A judge that can test its connection and its API key."""

    async def probe(self) -> str:
        """Call the API. Returns what it offers, as text for people."""


@runtime_checkable
class ReadsCriteria(Protocol):
    """A judge that can answer the criteria of the operator."""

    async def criteria_cost(self, sample: Sample) -> str:
        """Return what the criteria cost per answer, as text for people; empty if it reads none."""


@runtime_checkable
class EstimatesCost(Protocol):
    """A judge whose readings cost money."""

    def highest_cost(self, sample: Sample) -> Cost:
        """Return an upper bound on the cost of the first calls for a sample, without retries and second readings."""


@runtime_checkable
class ShowsPrompts(Protocol):
    """A judge that asks a model, and can build what it asks about a sample again."""

    def first_prompts(self, sample: Sample, seed: str) -> list[tuple[str, str]]:
        """Return rubric and page of each call that does not depend on a reply; the seed gives the random ids.

        Raises:
            JudgeError: It does not read such a sample.
        """


@runtime_checkable
class HoldsParts(Protocol):
    """A source whose samples arrive in parts. Parts wait in memory; the store has them for the next start."""

    def restore(self, parts: Iterable[Part]) -> None:
        """Take back the parts that were held and not released. Called once, after `Source.resume`."""


@runtime_checkable
class Finishes(Protocol):
    """A source that waits for more than what is written now, unless it knows that nothing more will be."""

    def finish(self) -> None:
        """Do not wait any longer for what is not written yet."""


@runtime_checkable
class ReceivesRequests(Protocol):
    """A source that clients send records to over HTTP.

    It answers a request after intake has committed the batch with its records. Closing it answers those that wait.
    """

    wake: asyncio.Event
    """Set when a request has arrived, so that the source is read at once."""
    handlers: Mapping[str, Handler]
    """Handlers of POST requests and of calls over gRPC, by path."""


@runtime_checkable
class RecognisesResent(Protocol):
    """A source whose clients may send a record again, because they have not received the answer."""

    recognises_resent: bool
    """Whether records with an id that was received before are counted as resent, and not read again."""


@runtime_checkable
class SupportsPeek(Protocol):
    """A source that shows records without taking them from others that read the same stream."""

    def peek(self) -> tuple[str, Batch | None]:
        """Return what there is, as text for people, and some of the newest records, if there are any.

        Raises:
            SourceError: The source cannot be read.
        """


@runtime_checkable
class SharedStore(Protocol):
    """A store that several workers share, of which one at a time leads: it does what must be done once for all."""

    def shared_secret(self, ours: bytes) -> bytes:
        """Return the secret of sampling and canary marks that all workers use: the first one that was given."""

    def lead(self, seconds: float, *, force: bool = False) -> int | None:
        """Become the leader for `seconds`, or stay it. Returns the number of this term; None while another leads.

        Seconds are by the clock of the server. `force` takes the place of a leader whose time is not over.
        """

    def resign(self, term: int) -> None:
        """End a term early, so that another worker can lead at once."""

    def fenced(self, term: Callable[[], int | None]) -> Store:
        """Return this store with transactions that write only within the term that `term` returns.

        Other ones raise `NotLeadingError` and write nothing, also if this process was stopped for any time.
        """

    def own_tallies(self) -> Tallies:
        """Return the part of the counters that this worker has counted. Those of all workers add up to `tallies`."""

    def revise(self, name: str, change: Callable[[SavedState | None], Mapping[str, object] | None]) -> SavedState:
        """Replace the state saved under a name by what `change` makes of it, in one transaction; None leaves it.

        Returns the state that is saved now.
        """


@runtime_checkable
class KeepsTexts(Protocol):
    """Options of a store that can delete texts after judging."""

    texts: str
    """Texts of which answers are kept: all, failing or none."""


@runtime_checkable
class HasName(Protocol):
    """Options of a named source."""

    @property
    def name(self) -> str:
        """Name of the source: the label `source`."""


@runtime_checkable
class HasRecordRules(Protocol):
    """Options of a source whose records are selected and read by rules, such as `sources.record_options`."""

    rules: RecordRules
    """How its records are read."""


def record_rules(options: object) -> RecordRules:
    """How the records of a source with these options are read."""
    return options.rules if isinstance(options, HasRecordRules) else RecordRules()


def log_reader(options: object) -> LogReader:
    """The reader of a source with these options. Raises `ConfigError` if an option is invalid."""
    return LogReader(record_rules(options))


@runtime_checkable
class HasLogFiles(HasName, Protocol):
    """Options of a source that reads log files, such as `sources.tail.Options`."""

    @property
    def patterns(self) -> tuple[str, ...]:
        """Paths and globs of the files."""


@runtime_checkable
class HasGrpcListener(HasName, Protocol):
    """Options of a source that may receive calls over gRPC, such as `sources.otlp.Options`."""

    grpc_listener: GrpcListener | None
    """Where they are received; None if they are not."""


@runtime_checkable
class HasUrgency(Protocol):
    """Options of a judge that may send samples as message batches."""

    urgency: str
    """`relaxed` for message batches, else `normal`."""


@runtime_checkable
class HasDeadline(Protocol):
    """Options of a judge that is called over a network."""

    timeout_seconds: float
    """Timeout of one call."""
    deadline_seconds: float
    """Seconds after the first call of a sample from which no further call starts."""


def uses_batches(options: object) -> bool:
    """Whether a judge with these options sends samples as message batches, which take up to a day."""
    return isinstance(options, HasUrgency) and options.urgency == "relaxed"
