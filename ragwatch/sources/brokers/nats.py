"""Source kind `nats`: reads a JetStream stream through a durable pull consumer, which workers share.

While there are messages that were delivered twice, one is read at a time, so that no other is given up with it.
"""

from __future__ import annotations

import asyncio
import json
import math
import ssl
from collections.abc import Coroutine, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal
from pydantic import Field, SecretStr

from ragwatch.errors import SourceError
from ragwatch.model.sample import LossReason
from ragwatch.sources.brokers import NO_ANSWER, Address, BrokerOptions, needed, reason
from ragwatch.sources.brokers.consumer import BrokerSource, Client, Delivery, Fetched, GoneError, Progress

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

    def run(self, coroutine: Coroutine[Any, Any, Result], seconds: float) -> Result:
        """Wait for the result of a coroutine. Raises TimeoutError if it takes longer; it is cancelled."""
        if self._portal is None:
            self._portal = self._ends.enter_context(start_blocking_portal(name=self._name))
        return self._portal.call(asyncio.wait_for, coroutine, seconds)

    def close(self) -> None:
        """Cancel what is running, and end the thread."""
        self._ends.close()
        self._portal = None


class NatsClient(Client):
    """A durable pull consumer. See `consumer.Client`. Every method connects if there is no connection."""

    def __init__(self, options: Options, progress: Progress) -> None:
        with needed(options.name, "nats", "nats-py", "nats"):
            import nats  # noqa: PLC0415 - an extra
            import nats.aio.client  # noqa: PLC0415 - the same
            import nats.js.api  # noqa: PLC0415 - the same
            import nats.js.errors  # noqa: PLC0415 - the same
        self._nats: Any = nats
        self._options = options
        self._progress = progress
        self.what = f"stream {options.stream}"
        self.extend_seconds = options.ack_wait_seconds / 2
        self._thread = LoopThread(f"source {options.name}")
        self._client: Any = None
        self._jetstream: Any = None
        self._inbox = ""
        self._arrived: Any = None
        self._pulls = 0
        self._why: Exception | None = None
        self._identity = ""
        self._floor = 0  # number in the stream up to which all is acknowledged

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

    def _run(self, call: Coroutine[Any, Any, Result]) -> Result:
        """Wait for a call of the connected client. Raises GoneError where consumer or stream does not exist."""
        try:
            return self._thread.run(call, 2 * self._options.timeout_seconds)
        except self._nats.js.errors.NotFoundError as error:
            raise GoneError(error.description) from None
        except (self._nats.errors.Error, OSError, TimeoutError, ValueError) as error:
            why, self._why = self._why or error, None
            self._disconnect()
            raise SourceError(f"nats {self.what} at {self._options.url}: {reason_of(why)}") from error

    def _connect(self) -> None:
        if self._client is None or not self._client.is_connected:
            self._disconnect()
            self._why = None
            self._run(self._connected())

    async def _connected(self) -> None:
        options = self._options

        async def note(error: Exception) -> None:
            self._why = error

        self._client = self._nats.aio.client.Client()
        await self._client.connect(
            options.url.split(","),
            error_cb=note,
            name=f"ragwatch {options.name}",
            allow_reconnect=False,
            connect_timeout=options.timeout_seconds,
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            user=options.username,
            password=None if options.password is None else options.password.get_secret_value(),
            token=None if options.token is None else options.token.get_secret_value(),
            user_credentials=None if options.credentials_file is None else str(options.credentials_file),
            tls=None if options.ca_file is None else ssl.create_default_context(cafile=options.ca_file),
        )
        self._jetstream = self._client.jetstream(timeout=options.timeout_seconds)
        self._inbox = self._client.new_inbox()
        self._arrived = await self._client.subscribe(f"{self._inbox}.*")
        self._why = None

    def _stream(self) -> Any:  # noqa: ANN401 - of the library
        self._connect()
        try:
            return self._run(self._jetstream.stream_info(self._options.stream))
        except GoneError:
            where = f"nats {self.what} at {self._options.url}"
            raise SourceError(f"{where}: there is no such stream; create it, or correct stream") from None

    def _state(self) -> Any:  # noqa: ANN401 - of the library
        """What the server says of the consumer."""
        state: Any = self._run(self._jetstream.consumer_info(self._options.stream, self._options.consumer))
        self._floor = max(state.ack_floor.stream_seq, self._floor)
        return state

    def join(self) -> None:
        """Make sure that there is a consumer."""
        self._connect()
        if self.joined:
            return
        stream = self._stream()
        # Numbers start over in a stream that is created again.
        identity = f"{self._options.stream}@{int(stream.created.timestamp() * 1e6)}"
        new = not self._identity and not self._progress.cursors
        if identity != self._identity:
            self._floor = int(self._progress.cursors.get(identity, -1))
        known, self._floor = self._floor, max(0, self._floor)
        try:
            self._state()
        except GoneError:
            self._create(stream.state, known, new=new)
        self._identity, self.joined = identity, True

    def _create(self, stream: Any, known: int, *, new: bool) -> None:  # noqa: ANN401 - of the library
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
        self._run(self._jetstream.add_consumer(options.stream, config))
        self._floor = stream.last_seq if from_now else first - 1

    def measure(self) -> None:
        """Ask how much the whole consumer has not acknowledged, and how old the oldest of it is."""
        self._connect()
        state = self._state()
        unread = (state.num_pending or 0) + (state.num_ack_pending or 0)
        oldest = self._message(state.ack_floor.stream_seq + 1) if unread else None
        at = getattr(oldest, "time", None)
        self.unread = unread, at.timestamp() if isinstance(at, datetime) else math.inf if unread == 0 else None

    def fetch(self) -> Fetched:
        """Messages that are there to be delivered; what arrives too late is returned the next time."""
        options, state = self._options, self._state()
        deliveries: list[Delivery] = []
        if state.num_pending or state.num_ack_pending:
            deliveries = self._run(self._pulled(1 if state.num_redelivered else options.batch_records))
        if options.subject is None:  # messages of other subjects are gaps as well
            self._count_trimmed(state, deliveries)
        return Fetched(self._identity, f"nats {self.what}", str(self._floor), deliveries)

    async def _pulled(self, count: int) -> list[Delivery]:
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
            number = about.sequence.stream
            deliveries.append(Delivery(number, number, message.data, about.num_delivered - 1, message))
            if about.num_pending == 0 and not self._arrived.pending_msgs:
                break
        return deliveries

    def _count_trimmed(self, state: Any, deliveries: Sequence[Delivery]) -> None:  # noqa: ANN401 - of the library
        """Count messages that the stream removed before they were delivered: gaps between consecutive deliveries."""
        number, last = state.delivered.consumer_seq, max(state.delivered.stream_seq, state.ack_floor.stream_seq)
        for one in deliveries:
            delivery = one.handle.metadata.sequence.consumer  # over all messages
            if one.before == 0:
                if delivery == number + 1:
                    self._progress.lost[LossReason.TRIMMED] += max(0, one.number - last - 1)
                last = one.number
            number = delivery

    def acknowledge(self, fetched: Fetched, good: Sequence[Delivery], dead: Sequence[Delivery]) -> None:  # noqa: ARG002
        """Acknowledge messages, and wait until the server has noted it."""
        self._connect()
        self._run(self._acknowledged(good, dead))

    async def _acknowledged(self, good: Sequence[Delivery], dead: Sequence[Delivery]) -> None:
        options, limit = self._options, self._options.timeout_seconds
        for letter in dead:
            if options.dead_letters is not None:
                headers = {
                    "Ragwatch-Reason": letter.why,
                    "Ragwatch-Stream": options.stream,
                    "Ragwatch-Sequence": str(letter.number),
                    "Nats-Msg-Id": f"{options.stream}:{letter.number}",  # a second copy is left out by the server
                }
                await self._jetstream.publish(options.dead_letters, letter.value, headers=headers)
            await self._client.request(letter.handle.reply, b"+TERM", timeout=limit)
        calls = (self._client.request(one.handle.reply, b"+ACK", timeout=limit) for one in good)
        for outcome in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(outcome, BaseException) and not isinstance(outcome, self._nats.errors.NoRespondersError):
                raise outcome  # without responders the consumer is gone, and what it delivered is delivered again

    def extend(self, deliveries: Sequence[Delivery]) -> bool:
        """Ask the server to wait longer for acknowledgements."""

        async def still_at_work() -> None:
            for one in deliveries:
                await self._client.publish(one.handle.reply, b"+WPI")
            await self._client.flush(self._options.timeout_seconds)

        if deliveries:
            self._connect()
            self._run(still_at_work())
        return True

    def _message(self, number: int) -> Any:  # noqa: ANN401 - of the library
        """A message of the stream; None if it is gone."""
        try:
            return self._run(self._jetstream.get_msg(self._options.stream, number))
        except GoneError:
            return None

    def newest(self, count: int) -> Fetched:
        """The newest messages of the stream, without a consumer."""
        state = self._stream().state
        numbers = range(max(state.first_seq, state.last_seq - count + 1, 1), state.last_seq + 1)
        messages = ((number, self._message(number)) for number in numbers)
        deliveries = [Delivery(number, number, one.data or b"") for number, one in messages if one is not None]
        return Fetched("", f"nats {self.what}", "0", deliveries)


def reason_of(error: Exception) -> str:
    """What went wrong and what to do, as text for people."""
    text = "timeout" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
    return reason(text, _REASONS, "the server cannot be reached ({}); start it, or correct url")


def build(options: Options) -> BrokerSource:
    """Build a source from its options. Raises ConfigError if the extra is not installed."""
    return BrokerSource(options, NatsClient)
