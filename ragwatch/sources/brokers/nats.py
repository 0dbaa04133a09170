"""Source kind `nats`: reads a JetStream stream through a durable pull consumer, which workers share.

While there are messages that were delivered twice, one is read at a time, so that no other is given up with it.
"""

from __future__ import annotations

import asyncio
import json
import math
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal
from pydantic import Field, SecretStr

from ragwatch.errors import SourceError
from ragwatch.model.sample import LossReason
from ragwatch.sources.brokers import NO_ANSWER, Address, BrokerOptions, needed, reason
from ragwatch.sources.brokers.consumer import BrokerSource, Client, Delivery, Fetched, GoneError, Progress

if TYPE_CHECKING:  # an extra
    from nats.aio.client import Client as Connection
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription
    from nats.js import JetStreamContext
    from nats.js.api import ConsumerInfo, RawStreamMsg, SequenceInfo, StreamInfo, StreamState

CLOSE_SECONDS = 2.0
PENDING_PER_BATCH = 20
"""Messages that may be waiting for an acknowledgement, over all workers, for each message of a batch."""
Result = TypeVar("Result")
_NAME = r"^[^\s.*>/\\]+$"
_REASONS = (
    (("timeout",), NO_ANSWER),
    (("authorization", "authentication", "credentials"),
     "the server refuses the login ({}); correct username, password, token or credentials_file"),
    (("permissions violation",), "the user may not do this ({}); allow the JetStream API, and _INBOX.>"),
    (("no response from stream",), "no stream takes dead letters; create one with the subject dead_letters"),
    (("jetstream not enabled", "code=503"), "the server has no JetStream at present ({}); enable it"),
)  # fmt: skip


class Options(BrokerOptions):
    """Options of a source of kind `nats`."""

    url: Address = Field(
        "nats://127.0.0.1:4222", description="Addresses of servers, separated by commas; `tls://` for TLS."
    )
    username: str | None = Field(None, description="User.")
    password: SecretStr | None = Field(None, description="Password.")
    token: SecretStr | None = Field(None, description="Token, for servers with one token for all.")
    credentials_file: Path | None = Field(None, description="File with the JWT and the seed of a user.")
    ca_file: Path | None = Field(None, description="Certificates of authorities to trust, for `tls://`.")
    stream: str = Field(pattern=_NAME, description="Name of the stream, which has to exist.")
    subject: str | None = Field(None, min_length=1, description="Subject to read; null for all of the stream.")
    consumer: str = Field(
        "ragwatch", pattern=_NAME, description="Durable consumer, which workers share; created if it does not exist."
    )
    ack_wait_seconds: float = Field(
        60.0, ge=0.1, description="Time after which a message that is not acknowledged is delivered again."
    )
    dead_letters: str | None = Field(
        None, min_length=1, description="Subject for dead letters, of a stream; null leaves them in their stream only."
    )


class LoopThread:
    """Runs coroutines for callers in other threads. The thread starts with the first one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._ends = ExitStack()
        self._portal: BlockingPortal | None = None

    def run(self, call: Awaitable[Result], seconds: float) -> Result:
        """Wait for the result of a coroutine. Raises TimeoutError if it takes longer; it is cancelled."""
        if self._portal is None:
            self._portal = self._ends.enter_context(start_blocking_portal(name=self._name))
        return self._portal.call(asyncio.wait_for, call, seconds)

    def close(self) -> None:
        """Cancel what is running, and end the thread."""
        self._ends.close()
        self._portal = None


class _Link(NamedTuple):
    """A connection, and where replies to its pulls arrive."""

    client: Connection
    jetstream: JetStreamContext
    inbox: str
    arrived: Subscription


class NatsClient(Client):
    """A durable pull consumer. See `consumer.Client`. Every call connects if there is no connection."""

    def __init__(self, options: Options, progress: Progress) -> None:
        with needed(options.name, "nats", "nats-py", "nats"):
            import nats  # noqa: PLC0415 - an extra
            import nats.aio.client  # noqa: PLC0415 - the same
            import nats.js.api  # noqa: PLC0415 - the same
            import nats.js.errors  # noqa: PLC0415 - the same
        self._nats = nats
        self._options = options
        self._progress = progress
        self.what = f"stream {options.stream}"
        self.extend_seconds = options.ack_wait_seconds / 2
        self._thread = LoopThread(f"source {options.name}")
        self._client: Connection | None = None
        self._link: _Link | None = None
        self._pulls = 0
        self._why: Exception | None = None
        self._identity = ""
        self._floor = 0  # number in the stream up to which all is acknowledged

    def close(self) -> None:
        """Close the connection and the thread."""
        self._disconnect()
        self._thread.close()

    def _disconnect(self) -> None:
        client, self._client, self._link = self._client, None, None
        if client is not None:
            try:
                self._thread.run(client.close(), CLOSE_SECONDS)
            except (TimeoutError, OSError, self._nats.errors.Error):
                return  # it is left to the end of the thread

    def _run(self, call: Callable[[_Link], Awaitable[Result]]) -> Result:
        """Wait for a call over the connection. Raises GoneError where consumer or stream does not exist."""
        seconds = 2 * self._options.timeout_seconds
        try:
            if self._link is None or not self._link.client.is_connected:
                self._disconnect()
                self._link = self._thread.run(self._connected(), seconds)
            return self._thread.run(call(self._link), seconds)
        except self._nats.js.errors.NotFoundError as error:
            raise GoneError(error.description) from None
        except (self._nats.errors.Error, OSError, TimeoutError, ValueError) as error:
            why, self._why = self._why or error, None
            self._disconnect()
            raise SourceError(f"nats {self.what} at {self._options.url}: {reason_of(why)}") from error

    async def _connected(self) -> _Link:
        options = self._options

        async def note(error: Exception) -> None:
            self._why = error

        self._why = None
        client = self._client = self._nats.aio.client.Client()
        await client.connect(
            options.url.split(","),
            error_cb=note,
            name=f"ragwatch {options.name}",
            allow_reconnect=False,
            connect_timeout=options.timeout_seconds,  # type: ignore[arg-type]  # which may have a fraction
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            user=options.username,
            password=None if options.password is None else options.password.get_secret_value(),
            token=None if options.token is None else options.token.get_secret_value(),
            user_credentials=None if options.credentials_file is None else str(options.credentials_file),
            tls=None if options.ca_file is None else ssl.create_default_context(cafile=options.ca_file),
        )
        inbox = client.new_inbox()
        arrived = await client.subscribe(f"{inbox}.*")
        self._why = None
        return _Link(client, client.jetstream(timeout=options.timeout_seconds), inbox, arrived)

    def _stream(self) -> StreamInfo:
        try:
            return self._run(lambda link: link.jetstream.stream_info(self._options.stream))
        except GoneError:
            where = f"nats {self.what} at {self._options.url}"
            raise SourceError(f"{where}: there is no such stream; create it, or correct stream") from None

    def _state(self) -> ConsumerInfo:
        """What the server says of the consumer."""
        options = self._options
        state: ConsumerInfo = self._run(lambda link: link.jetstream.consumer_info(options.stream, options.consumer))
        self._floor = max(_place(state.ack_floor), self._floor)
        return state

    def join(self) -> None:
        """Make sure that there is a consumer."""
        if self.joined:
            return
        stream = self._stream()
        # Numbers start over in a stream that is created again.
        created = 0.0 if stream.created is None else stream.created.timestamp()
        identity = f"{self._options.stream}@{int(created * 1e6)}"
        new = not self._identity and not self._progress.cursors
        if identity != self._identity:
            self._floor = int(self._progress.cursors.get(identity, -1))
        known, self._floor = self._floor, max(0, self._floor)
        try:
            self._state()
        except GoneError:
            self._create(stream.state, known, new=new)
        self._identity, self.joined = identity, True

    def _create(self, stream: StreamState, known: int, *, new: bool) -> None:
        """Create the consumer: after what is stored, -1 if nothing is, else where the options say."""
        api, options = self._nats.js.api, self._options
        from_now = known < 0 and new and options.start == "end"
        first = max(known + 1, stream.first_seq, 1)
        if known >= 0:
            self._progress.resets["group_recreated"] += 1
            if options.subject is None:
                self._progress.lost[LossReason.TRIMMED] += max(0, stream.first_seq - known - 1)
        config = api.ConsumerConfig(
            durable_name=options.consumer,
            deliver_policy=api.DeliverPolicy.NEW if from_now else api.DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=None if from_now else first,
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=options.ack_wait_seconds,
            max_deliver=-1,  # a message is given up here, so that it is counted
            max_ack_pending=PENDING_PER_BATCH * options.batch_records,
            filter_subject=options.subject,
        )
        self._run(lambda link: link.jetstream.add_consumer(options.stream, config))
        self._floor = stream.last_seq if from_now else first - 1

    def measure(self) -> None:
        """Ask how much the whole consumer has not acknowledged, and how old the oldest of it is."""
        state = self._state()
        unread = (state.num_pending or 0) + (state.num_ack_pending or 0)
        oldest = self._message(_place(state.ack_floor) + 1) if unread else None
        at = None if oldest is None or oldest.time is None else oldest.time.timestamp()
        self.unread = unread, at if unread else math.inf

    def fetch(self) -> Fetched:
        """Messages that are there to be delivered; what arrives too late is returned the next time."""
        options, state = self._options, self._state()
        deliveries: list[Delivery] = []
        if state.num_pending or state.num_ack_pending:
            count = 1 if state.num_redelivered else options.batch_records
            pulled = self._run(lambda link: self._pulled(link, count))
            if options.subject is None:  # messages of other subjects are gaps as well
                self._count_trimmed(state, pulled)
            deliveries = list(map(_delivery, pulled))
        return Fetched(self._identity, f"nats {self.what}", str(self._floor), deliveries)

    async def _pulled(self, link: _Link, count: int) -> list[Msg]:
        self._pulls += 1
        reply = f"{link.inbox}.{self._pulls}"
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._options.stream}.{self._options.consumer}"
        messages: list[Msg] = []
        if not link.arrived.pending_msgs:
            pull = json.dumps({"batch": count, "no_wait": True})
            await link.client.publish(subject, pull.encode(), reply)
        while len(messages) < count:
            try:
                message = await link.arrived.next_msg(self._options.timeout_seconds)
            except self._nats.errors.TimeoutError:
                if messages:
                    break
                raise
            if message.headers and "Status" in message.headers:
                if message.subject == reply:
                    break
                continue  # the end of an earlier pull
            messages.append(message)
            if message.metadata.num_pending == 0 and not link.arrived.pending_msgs:
                break
        return messages

    def _count_trimmed(self, state: ConsumerInfo, messages: Sequence[Msg]) -> None:
        """Count messages that the stream removed before they were delivered: gaps between consecutive deliveries."""
        number = 0 if state.delivered is None else state.delivered.consumer_seq
        last = max(_place(state.delivered), _place(state.ack_floor))
        for about in (message.metadata for message in messages):
            if about.num_delivered == 1:
                if about.sequence.consumer == number + 1:  # over all messages
                    self._progress.lost[LossReason.TRIMMED] += max(0, about.sequence.stream - last - 1)
                last = about.sequence.stream
            number = about.sequence.consumer

    def acknowledge(self, fetched: Fetched, good: Sequence[Delivery], dead: Sequence[Delivery]) -> None:  # noqa: ARG002
        """Acknowledge messages, and wait until the server has noted it."""
        self._run(lambda link: self._acknowledged(link, good, dead))

    async def _acknowledged(self, link: _Link, good: Sequence[Delivery], dead: Sequence[Delivery]) -> None:
        options, limit = self._options, self._options.timeout_seconds
        for letter in dead:
            if options.dead_letters is not None:
                headers = {
                    "Ragwatch-Reason": letter.why,
                    "Ragwatch-Stream": options.stream,
                    "Ragwatch-Sequence": str(letter.number),
                    "Nats-Msg-Id": f"{options.stream}:{letter.number}",  # a second copy is left out by the server
                }
                await link.jetstream.publish(options.dead_letters, letter.value or b"", headers=headers)
            await link.client.request(letter.handle, b"+TERM", timeout=limit)
        calls = (link.client.request(one.handle, b"+ACK", timeout=limit) for one in good)
        for outcome in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(outcome, BaseException) and not isinstance(outcome, self._nats.errors.NoRespondersError):
                raise outcome  # without responders the consumer is gone, and what it delivered is delivered again

    def extend(self, deliveries: Sequence[Delivery]) -> bool:
        """Ask the server to wait longer for acknowledgements."""

        async def still_at_work(link: _Link) -> None:
            for one in deliveries:
                await link.client.publish(one.handle, b"+WPI")
            await link.client.flush(math.ceil(self._options.timeout_seconds))

        if deliveries:
            self._run(still_at_work)
        return True

    def _message(self, number: int) -> RawStreamMsg | None:
        """A message of the stream; None if it is gone."""
        try:
            return self._run(lambda link: link.jetstream.get_msg(self._options.stream, number))
        except GoneError:
            return None

    def newest(self, count: int) -> Fetched:
        """The newest messages of the stream, without a consumer."""
        state = self._stream().state
        numbers = range(max(state.first_seq, state.last_seq - count + 1, 1), state.last_seq + 1)
        messages = ((number, self._message(number)) for number in numbers)
        deliveries = [Delivery(number, number, one.data or b"") for number, one in messages if one is not None]
        return Fetched("", f"nats {self.what}", "0", deliveries)


def _place(sequence: SequenceInfo | None) -> int:
    return 0 if sequence is None else sequence.stream_seq


def _delivery(message: Msg) -> Delivery:
    number, before = message.metadata.sequence.stream, message.metadata.num_delivered - 1
    return Delivery(number, number, message.data, before, message.reply)


def reason_of(error: Exception) -> str:
    """What went wrong and what to do, as text for people."""
    text = "timeout" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
    return reason(text, _REASONS, "the server cannot be reached ({}); start it, or correct url")


def build(options: Options) -> BrokerSource:
    """Build a source from its options. Raises ConfigError if the extra is not installed."""
    return BrokerSource(options, NatsClient)
