"""A queue of Amazon SQS, standard or FIFO. Failures become our errors.

A FIFO queue delivers the messages of a group in their order, and none of them while earlier ones are delivered and not
deleted, so that one worker at a time has a group.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ragwatch.errors import ConfigError, SourceError
from ragwatch.sources.messages import missing_package
from ragwatch.sources.sqs.options import Options

MAX_AT_ONCE = 10  # messages in a request
FIFO = ".fifo"  # how the names of FIFO queues end
WAIT_SECONDS = 1  # for messages, where there are none: a shorter poll asks only some of Amazon's servers
_LOGIN = "correct access_key_id, secret_access_key and region, or the role, and allow sqs:{}"


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message as it was delivered.

    Attributes:
        number: Its id as a number, the same in each delivery.
        sent: When it was sent, in milliseconds since the epoch.
        times: How often it was delivered.
        body: The record.
        handle: For the server.
        group: The group of a message of a FIFO queue; None in other queues.
    """

    number: int
    sent: int
    times: int
    body: bytes
    handle: str
    group: str | None = None


class Queue:
    """Every method raises SourceError when the server fails.

    Args:
        options: Address and keys.

    Raises:
        ConfigError: The extra is not installed, or the region is missing.
    """

    def __init__(self, options: Options) -> None:
        try:
            import boto3  # noqa: PLC0415 - an extra
            import botocore.config  # noqa: PLC0415 - the same
            import botocore.exceptions  # noqa: PLC0415 - the same
        except ImportError:
            raise missing_package(options.name, "sqs", "boto3", "sqs") from None
        self._errors: Any = botocore.exceptions
        self._options = options
        self._attempt: str | None = None  # a request to a FIFO queue whose reply was lost
        self._where = f"sqs queue {options.queue_url}"
        secret = options.secret_access_key
        limit = options.timeout_seconds
        settings = botocore.config.Config(
            connect_timeout=limit, read_timeout=limit + WAIT_SECONDS, retries={"total_max_attempts": 1}
        )
        try:
            self._client: Any = boto3.session.Session().client(
                "sqs",
                region_name=options.region,
                endpoint_url=options.endpoint_url,
                aws_access_key_id=options.access_key_id,
                aws_secret_access_key=None if secret is None else secret.get_secret_value(),
                config=settings,
            )
        except (self._errors.BotoCoreError, ValueError) as error:
            raise ConfigError(f"sources.{options.name}.region: {error}; set it, or correct endpoint_url") from None

    def close(self) -> None:
        """Close connections."""
        self._client.close()

    def _call(self, name: str, action: str, **parameters: Any) -> dict[str, Any]:  # noqa: ANN401 - of the API
        """Return the reply to a request."""
        parameters = {"QueueUrl": self._options.queue_url, **parameters}
        try:
            reply: dict[str, Any] = getattr(self._client, name)(**parameters)
        except self._errors.ClientError as error:
            raise SourceError(f"{self._where}: {_refusal(error.response.get('Error', {}), action)}") from error
        except self._errors.NoCredentialsError as error:
            raise SourceError(f"{self._where}: there are no credentials; {_LOGIN.format(action)}") from error
        except (self._errors.ConnectTimeoutError, self._errors.ReadTimeoutError) as error:
            raise SourceError(f"{self._where}: the server does not answer in time") from error
        except self._errors.BotoCoreError as error:
            raise SourceError(f"{self._where}: the server cannot be reached ({error}); correct queue_url") from error
        return reply

    def receive(self, count: int, *, visibility: int | None = None) -> list[Delivery]:
        """Return messages that are there to be delivered.

        Args:
            count: Maximum number.
            visibility: Seconds until they are delivered again; None for `visibility_seconds`.
        """
        deliveries: list[Delivery] = []
        while len(deliveries) < count:
            try:
                received = self._receive(
                    MaxNumberOfMessages=min(MAX_AT_ONCE, count - len(deliveries)),
                    VisibilityTimeout=self._options.visibility_seconds if visibility is None else visibility,
                    WaitTimeSeconds=0 if deliveries else WAIT_SECONDS,
                )
            except SourceError:
                if not deliveries:
                    raise
                break  # the next call raises it again
            deliveries += received
            if not received or visibility == 0:
                break
        return deliveries

    def _receive(self, **parameters: int) -> list[Delivery]:
        """Return the messages of one request. One to a FIFO queue that failed is repeated under its id.

        Without that, messages whose delivery was lost would hold up their groups until they are delivered again.
        """
        names = ["ApproximateReceiveCount", "SentTimestamp", "MessageGroupId"]
        attempt = {}
        if self._options.queue_url.endswith(FIFO):
            self._attempt = self._attempt or uuid.uuid4().hex
            attempt = {"ReceiveRequestAttemptId": self._attempt}
        reply = self._call("receive_message", "ReceiveMessage", AttributeNames=names, **attempt, **parameters)
        self._attempt = None
        return list(map(_delivery, reply.get("Messages", ())))

    def delete(self, deliveries: Sequence[Delivery]) -> None:
        """Delete messages, which acknowledges them. One whose time is over is left: it is delivered again."""
        self._batches("delete_message_batch", "DeleteMessage", deliveries, {})

    def extend(self, deliveries: Sequence[Delivery]) -> None:
        """Ask the server to wait longer until it delivers messages again."""
        seconds = {"VisibilityTimeout": self._options.visibility_seconds}
        self._batches("change_message_visibility_batch", "ChangeMessageVisibility", deliveries, seconds)

    def _batches(self, name: str, action: str, deliveries: Sequence[Delivery], more: dict[str, int]) -> None:
        for start in range(0, len(deliveries), MAX_AT_ONCE):
            part = deliveries[start : start + MAX_AT_ONCE]
            entries = [{"Id": str(place), "ReceiptHandle": one.handle, **more} for place, one in enumerate(part)]
            for failed in self._call(name, action, Entries=entries).get("Failed", ()):
                if not failed.get("SenderFault"):
                    raise SourceError(f"{self._where}: {_refusal(failed, action)}")

    def give_up(self, letter: Delivery) -> None:
        """Copy a dead letter to its queue, if there is one."""
        url = self._options.dead_letters
        if url is None:
            return
        reason = f"delivered {letter.times - 1} times and never stored"
        about = {"RagwatchReason": reason, "RagwatchQueue": self._options.queue_url}
        place = {}
        if url.endswith(FIFO):  # a copy that is sent again is recognised by its id
            place = {"MessageGroupId": letter.group or str(letter.number), "MessageDeduplicationId": str(letter.number)}
        self._call(
            "send_message",
            "SendMessage",
            QueueUrl=url,
            MessageBody=letter.body.decode("utf-8", "replace"),
            MessageAttributes={name: {"DataType": "String", "StringValue": value} for name, value in about.items()},
            **place,
        )

    def waiting(self) -> int:
        """Return how many messages are in the queue, delivered ones included; SQS says so only roughly."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        reply = self._call("get_queue_attributes", "GetQueueAttributes", AttributeNames=names)
        return sum(int(reply.get("Attributes", {}).get(name, 0)) for name in names)


def _delivery(message: dict[str, Any]) -> Delivery:
    about = message.get("Attributes", {})
    return Delivery(
        number=_number(str(message["MessageId"])),
        sent=int(about.get("SentTimestamp", 0)),
        times=int(about.get("ApproximateReceiveCount", 1)),
        body=str(message["Body"]).encode("utf-8", "replace"),
        handle=str(message["ReceiptHandle"]),
        group=about.get("MessageGroupId"),
    )


def _number(identity: str) -> int:
    """Return the id of a message as a number.

    >>> _number("00000000-0000-0000-0000-00000000000f"), _number("m7") == _number("m7")
    (15, True)
    """
    try:
        return uuid.UUID(identity).int
    except ValueError:  # of another server with this API
        return uuid.uuid5(uuid.NAMESPACE_OID, identity).int


def _refusal(error: dict[str, Any], action: str) -> str:
    """What went wrong and what to do, as text for people."""
    code, text = str(error.get("Code", "")), str(error.get("Message", ""))
    if "NonExistentQueue" in code or "QueueDoesNotExist" in code:
        return "there is no such queue; create it, or correct queue_url"
    if any(word in code for word in ("Access", "Token", "Signature", "Auth", "Credentials")):
        return f"the server refuses the login ({code}); {_LOGIN.format(action)}"
    return f"the server refuses {action} ({code}: {text})"
