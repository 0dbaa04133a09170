"""Reads a queue of Amazon SQS; deletes what the store has.

Order: receive, store, delete. Whatever fails in between is delivered again, and recognised by its id. A message that
was delivered `max_deliveries` times without being stored is given up: it is counted, copied if there is a queue for
dead letters, and deleted. A process begins with one message at a time and doubles that; after a message that was
delivered before it begins again with one, so that no other message is given up with one that ends every process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from ragwatch.core.snapshot import Lag
from ragwatch.errors import SourceError
from ragwatch.ports import Batch
from ragwatch.sources.messages import MEASURE_SECONDS, Message, StreamPlace, batch_of
from ragwatch.sources.sqs.options import Options
from ragwatch.sources.sqs.queue import MAX_AT_ONCE, Delivery, Queue

CURSOR = "0"  # a queue has no places to go on from


@dataclass(frozen=True, slots=True)
class _Reading:
    """A batch that is not committed.

    Attributes:
        good: Messages to delete.
        dead: Messages to give up.
    """

    batch: Batch
    good: Sequence[Delivery]
    dead: Sequence[Delivery]


class SqsSource:
    """See `ports.Source` and the module.

    Args:
        options: What to read.
        monotonic: Seconds, for waiting.
    """

    recognises_resent = True

    def __init__(self, options: Options, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.name = options.name
        self._options = options
        self._monotonic = monotonic
        self._queue = Queue(options)
        display = f"sqs queue {options.queue_url.rpartition('/')[2]}"
        self._place = StreamPlace(options.name, options.queue_url, display, "body", options.max_record_bytes)
        self._count = 1
        self._reading: _Reading | None = None
        self._received_at = 0.0
        self._unacknowledged: list[_Reading] = []
        self._waiting: int | None = None
        self._measure_at = float("-inf")

    def resume(self, cursors: Mapping[str, str]) -> None:
        """Do nothing: the queue has what is not stored."""

    def read(self) -> Batch | None:
        """Return messages that are not stored yet.

        Raises:
            SourceError: The server cannot be reached, or refuses.
        """
        try:
            if self._reading is None:
                self._reading = self._next()
            elif self._monotonic() - self._received_at > self._options.visibility_seconds / 2:
                self._queue.extend([*self._reading.good, *self._reading.dead])
                self._received_at = self._monotonic()
        except SourceError:
            self._waiting = None
            raise
        return None if self._reading is None else self._reading.batch

    def commit(self, batch: Batch) -> None:
        """Delete the messages of a batch. If that fails they are deleted before the next read.

        Raises:
            SourceError: The server cannot be reached.
        """
        reading = self._reading
        if reading is None or reading.batch is not batch:
            return
        self._reading = None
        self._unacknowledged.append(reading)
        self._acknowledge()

    def lag(self) -> Lag:
        """Messages in the queue, unknown while the server cannot be reached. SQS does not say how old they are."""
        return Lag(None, None, records=self._waiting)

    def close(self) -> None:
        """Close connections. What is not deleted is delivered again."""
        self._queue.close()

    def peek(self) -> tuple[str, Batch | None]:
        """See `capabilities.SupportsPeek`. SQS counts this as a delivery of these messages."""
        name = self._place.name
        deliveries = self._queue.receive(MAX_AT_ONCE, visibility=0)
        if not deliveries:
            return f"the {name} is empty", None
        return f"the {name} has records", batch_of(self._place, _messages(deliveries), CURSOR)

    def _next(self) -> _Reading | None:
        self._acknowledge()
        now = self._monotonic()
        if now >= self._measure_at:
            self._measure_at = now + MEASURE_SECONDS
            self._waiting = self._queue.waiting()
        deliveries = self._queue.receive(self._count)
        self._received_at = self._monotonic()
        if not deliveries:
            self._waiting = self._queue.waiting()
            return None
        again = any(one.times > 1 for one in deliveries)
        self._count = 1 if again else min(2 * self._count, self._options.batch_records)
        limit = self._options.max_deliveries
        good = [one for one in deliveries if one.times <= limit]
        dead = [one for one in deliveries if one.times > limit]
        times: dict[int, int] = {}
        for one in dead:
            times[next(number for number in count(one.sent) if number not in times)] = one.times - 1
        return _Reading(batch_of(self._place, _messages(good), CURSOR, dead=times), good, dead)

    def _acknowledge(self) -> None:
        """Delete what is stored, and give up dead letters."""
        while self._unacknowledged:
            reading = self._unacknowledged[0]
            for letter in reading.dead:
                self._queue.give_up(letter)
            self._queue.delete([*reading.good, *reading.dead])
            self._unacknowledged.pop(0)


def _messages(deliveries: Sequence[Delivery]) -> list[Message]:
    return [Message(one.number, one.sent, one.body) for one in deliveries]


def build(options: Options) -> SqsSource:
    """Build a source from its options.

    Raises:
        ConfigError: The extra is not installed, or the region is missing.
    """
    return SqsSource(options)
