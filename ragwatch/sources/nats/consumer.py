"""A durable pull consumer of a JetStream stream, for callers in other threads. Failures become our errors."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from ragwatch.errors import SourceError
from ragwatch.sources.messages import missing_package
from ragwatch.sources.nats.loop_thread import LoopThread
from ragwatch.sources.nats.options import Options

CLOSE_SECONDS = 2.0
PENDING_PER_BATCH = 20
"""Messages that may be waiting for an acknowledgement, over all workers, for each message of a batch."""
Result = TypeVar("Result")
_LOGIN = "correct username, password, token or credentials_file"


class ConsumerGoneError(Exception):
    """The consumer, or its stream, does not exist."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message as it was delivered.

    Attributes:
        sequence: Its number in the stream.
        delivery: Number of this delivery in the consumer, over all messages.
        times: How often this message was delivered.
        message: For the client library.
    """

    sequence: int
    delivery: int
    times: int
    data: bytes
    message: Any


@dataclass(frozen=True, slots=True)
class ConsumerState:
    """Where a consumer is.

    Attributes:
        unread: Messages that were not delivered yet.
        pending: Messages that were delivered and are not acknowledged.
        redelivered: Those of them that were delivered more than once.
        delivered: Number in the stream of the last message that was delivered.
        deliveries: How often any message was delivered.
        floor: Number in the stream up to which all is acknowledged.
    """

    unread: int
    pending: int
    redelivered: int
    delivered: int
    deliveries: int
    floor: int


@dataclass(frozen=True, slots=True)
class StreamState:
    """A stream.

    Attributes:
        created: When it was created, as microseconds since the epoch.
        first: Number of its first message.
        last: Number of its last message.
    """

    created: int
    first: int
    last: int


class JetStreamConsumer:
    """Every method raises SourceError when the server fails, and connects if there is no connection.

    Args:
        options: Address, stream and consumer.

    Raises:
        ConfigError: The extra is not installed.
    """

    def __init__(self, options: Options) -> None:
        try:
            import nats  # noqa: PLC0415 - an extra
            import nats.aio.client  # noqa: PLC0415 - the same
            import nats.js.api  # noqa: PLC0415 - the same
            import nats.js.errors  # noqa: PLC0415 - the same
        except ImportError:
            raise missing_package(options.name, "nats", "nats-py", "nats") from None
        self._nats = nats
        self._options = options
        self._where = f"nats stream {options.stream} at {options.url}"
        self._thread = LoopThread(f"source {options.name}")
        self._client: Any = None
        self._jetstream: Any = None
        self._inbox = ""
        self._arrived: Any = None
        self._pulls = 0
        self._why: Exception | None = None

    def close(self) -> None:
        """Close the connection and the thread."""
        self._disconnect()
        self._thread.close()

    def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            try:
                self._thread.run(client.close(), CLOSE_SECONDS)
            except (TimeoutError, OSError, self._nats.errors.Error):
                return  # it is left to the end of the thread

    def _run(self, call: Coroutine[Any, Any, Result], seconds: float | None = None) -> Result:
        """Wait for a call of the connected client.

        Raises:
            ConsumerGoneError: The consumer or the stream does not exist.
        """
        errors, js = self._nats.errors, self._nats.js.errors
        limit = self._options.timeout_seconds
        try:
            return self._thread.run(call, 2 * limit if seconds is None else seconds)
        except js.NotFoundError as error:
            raise ConsumerGoneError(error.description) from None
        except (errors.Error, OSError, TimeoutError, ValueError) as error:
            why, self._why = self._why or error, None
            self._disconnect()
            raise SourceError(f"{self._where}: {_reason(why)}") from error

    def connect(self) -> None:
        """Connect, if there is no connection."""
        if self._client is not None and self._client.is_connected:
            return
        self._disconnect()
        self._why = None
        self._run(self._connect())

    async def _connect(self) -> None:
        options = self._options
        limit = options.timeout_seconds

        async def note(error: Exception) -> None:
            self._why = error

        self._client = self._nats.aio.client.Client()
        await self._client.connect(
            options.url.split(","),
            error_cb=note,
            name=f"ragwatch {options.name}",
            allow_reconnect=False,
            connect_timeout=limit,
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            user=options.username,
            password=None if options.password is None else options.password.get_secret_value(),
            token=None if options.token is None else options.token.get_secret_value(),
            user_credentials=None if options.credentials_file is None else str(options.credentials_file),
            tls=None if options.ca_file is None else ssl.create_default_context(cafile=options.ca_file),
        )
        self._jetstream = self._client.jetstream(timeout=limit)
        self._inbox = self._client.new_inbox()
        self._arrived = await self._client.subscribe(f"{self._inbox}.*")
        self._why = None

    def stream(self) -> StreamState:
        """The stream.

        Raises:
            SourceError: There is no such stream.
        """
        self.connect()
        try:
            info = self._run(self._jetstream.stream_info(self._options.stream))
        except ConsumerGoneError:
            raise SourceError(f"{self._where}: there is no such stream; create it, or correct stream") from None
        return StreamState(int(info.created.timestamp() * 1e6), info.state.first_seq, info.state.last_seq)

    def state(self) -> ConsumerState:
        """The consumer.

        Raises:
            ConsumerGoneError: It does not exist.
        """
        info = self._run(self._jetstream.consumer_info(self._options.stream, self._options.consumer))
        return ConsumerState(
            unread=info.num_pending or 0,
            pending=info.num_ack_pending or 0,
            redelivered=info.num_redelivered or 0,
            delivered=info.delivered.stream_seq,
            deliveries=info.delivered.consumer_seq,
            floor=info.ack_floor.stream_seq,
        )

    def create(self, first: int | None) -> None:
        """Create the consumer.

        Args:
            first: Number in the stream of the first message to read; None for those from now on.
        """
        api, options = self._nats.js.api, self._options
        policy = api.DeliverPolicy.NEW if first is None else api.DeliverPolicy.BY_START_SEQUENCE
        config = api.ConsumerConfig(
            durable_name=options.consumer,
            deliver_policy=policy,
            opt_start_seq=first,
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=options.ack_wait_seconds,
            max_deliver=-1,  # a message is given up here, so that it is counted
            max_ack_pending=PENDING_PER_BATCH * options.batch_records,
            filter_subject=options.subject,
        )
        self._run(self._jetstream.add_consumer(options.stream, config))

    def fetch(self, count: int) -> list[Delivery]:
        """Return messages that are there to be delivered; what arrives too late is returned the next time."""
        return self._run(self._fetch(count))

    async def _fetch(self, count: int) -> list[Delivery]:
        self._pulls += 1
        reply = f"{self._inbox}.{self._pulls}"
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._options.stream}.{self._options.consumer}"
        deliveries: list[Delivery] = []
        if not self._arrived.pending_msgs:
            pull = json.dumps({"batch": count, "no_wait": True})
            await self._client.publish(subject, pull.encode(), reply)
        while len(deliveries) < count:
            try:
                message = await self._arrived.next_msg(self._options.timeout_seconds)
            except self._nats.errors.TimeoutError:
                if deliveries:
                    break
                raise
            if message.headers and "Status" in message.headers:
                if message.subject == reply:
                    break
                continue  # the end of an earlier pull
            about = message.metadata
            place = about.sequence
            deliveries.append(Delivery(place.stream, place.consumer, about.num_delivered, message.data, message))
            if about.num_pending == 0 and not self._arrived.pending_msgs:
                break
        return deliveries

    def acknowledge(self, deliveries: Sequence[Delivery], dead: Sequence[Delivery] = ()) -> None:
        """Acknowledge messages, and wait until the server has noted it. Dead letters are copied before."""
        self.connect()
        self._run(self._acknowledge(deliveries, dead))

    async def _acknowledge(self, deliveries: Sequence[Delivery], dead: Sequence[Delivery]) -> None:
        limit = self._options.timeout_seconds
        for letter in dead:
            await self._give_up(letter)
        calls = (self._client.request(one.message.reply, b"+ACK", timeout=limit) for one in deliveries)
        for outcome in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(outcome, BaseException) and not isinstance(outcome, self._nats.errors.NoRespondersError):
                raise outcome  # without responders the consumer is gone, and what it delivered is delivered again

    async def _give_up(self, letter: Delivery) -> None:
        options = self._options
        if options.dead_letters is not None:
            headers = {
                "Ragwatch-Reason": f"delivered {letter.times - 1} times and never stored",
                "Ragwatch-Stream": options.stream,
                "Ragwatch-Sequence": str(letter.sequence),
                "Nats-Msg-Id": f"{options.stream}:{letter.sequence}",  # a second copy is left out by the server
            }
            await self._jetstream.publish(options.dead_letters, letter.data, headers=headers)
        await self._client.request(letter.message.reply, b"+TERM", timeout=options.timeout_seconds)

    def still_at_work(self, deliveries: Sequence[Delivery]) -> None:
        """Ask the server to wait longer for acknowledgements."""

        async def extend() -> None:
            for one in deliveries:
                await self._client.publish(one.message.reply, b"+WPI")
            await self._client.flush(self._options.timeout_seconds)

        self.connect()
        self._run(extend())

    def stored_at(self, sequence: int) -> float | None:
        """When a message was stored in the stream, as seconds since the epoch; None if it is gone."""
        try:
            message = self._run(self._jetstream.get_msg(self._options.stream, sequence))
        except ConsumerGoneError:
            return None
        return message.time.timestamp() if isinstance(message.time, datetime) else None

    def newest(self, count: int) -> list[tuple[int, bytes]]:
        """The newest messages of the stream with their numbers, in order, without a consumer."""
        state = self.stream()
        messages = []
        for sequence in range(max(state.first, state.last - count + 1, 1), state.last + 1):
            try:
                message = self._run(self._jetstream.get_msg(self._options.stream, sequence))
            except ConsumerGoneError:
                continue
            messages.append((sequence, message.data or b""))
        return messages


def _reason(error: Exception) -> str:
    """What went wrong and what to do, as text for people."""
    text = str(error) or type(error).__name__
    lower = text.lower()
    if isinstance(error, TimeoutError) or "timeout" in lower:
        return "the server does not answer in time"
    reasons = (
        (("authorization", "authentication", "credentials"), f"the server refuses the login ({text}); {_LOGIN}"),
        (("permissions violation",), f"the user may not do this ({text}); allow the JetStream API, and _INBOX.>"),
        (("no response from stream",), "no stream takes dead letters; create one with the subject dead_letters"),
        (("jetstream not enabled", "code=503"), f"the server has no JetStream at present ({text}); enable it"),
    )
    matching = (why for words, why in reasons if any(word in lower for word in words))
    return next(matching, f"the server cannot be reached ({text}); start it, or correct url")
