"""Source kind `sqs`: reads a queue of Amazon SQS, standard or FIFO; deletes what the store has.

A process begins with one message at a time and doubles that; after a message that was delivered before it begins again
with one, so that no other message is given up with one that ends every process. A FIFO queue delivers the messages of a
group in their order, and none of them while earlier ones are delivered and not deleted, so that one worker at a time
has a group.
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from pydantic import Field, SecretStr

from ragwatch.errors import ConfigError, SourceError
from ragwatch.sources.brokers import NO_ANSWER, Address, BrokerOptions, needed, reason
from ragwatch.sources.brokers.consumer import BrokerSource, Client, Delivery, Fetched, Progress

MAX_AT_ONCE = 10  # messages in a request
FIFO = ".fifo"  # how the names of FIFO queues end
WAIT_SECONDS = 1  # for messages, where there are none: a shorter poll asks only some of Amazon's servers
_KEYS = "correct access_key_id and secret_access_key, or what stands for them in the environment (AWS_*, the profile)"
_LOGIN = "correct access_key_id, secret_access_key and region, or the role, and allow sqs:*"
_REASONS = (
    (("nonexistentqueue", "queuedoesnotexist"), "there is no such queue; create it, or correct queue_url"),
    (("nocredentialserror",), f"there are no credentials; {_LOGIN}"),
    (("connecttimeouterror", "readtimeouterror"), NO_ANSWER),
    (("access", "token", "signature", "auth", "credentials"), f"the server refuses the login ({{}}); {_LOGIN}"),
)
_SIZES = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
_ABOUT = ["ApproximateReceiveCount", "SentTimestamp", "MessageGroupId"]
QueueUrl = Annotated[Address, Field(pattern=r"^https?://[^/]+/.+")]


class Options(BrokerOptions):
    """Options of a source of kind `sqs`."""

    queue_url: QueueUrl = Field(description="Address of the queue: https://sqs.REGION.amazonaws.com/ACCOUNT/NAME.")
    region: str | None = Field(None, min_length=1, description="Region; null for that of the environment.")
    endpoint_url: Address | None = Field(
        None, description="Address of another server with the same API; null for Amazon's."
    )
    access_key_id: str | None = Field(None, description="Access key; null for the role or the environment.")
    secret_access_key: SecretStr | None = Field(None, description="Its secret.")
    visibility_seconds: int = Field(
        60, ge=1, le=43_200, description="Time after which a message that is not deleted is delivered again."
    )
    dead_letters: QueueUrl | None = Field(
        None, description="Address of a queue for dead letters; null deletes them after they are counted."
    )
    start: Literal["beginning"] = Field("beginning", description="A queue has no other place to start.")


class SqsClient(Client):
    """One queue. See `consumer.Client`. A queue has no group and no places to go on from."""

    value = "body"

    def __init__(self, options: Options, _: Progress) -> None:
        with needed(options.name, "sqs", "boto3", "sqs"):
            import boto3  # noqa: PLC0415 - an extra
            import botocore.config  # noqa: PLC0415 - the same
            import botocore.exceptions  # noqa: PLC0415 - the same
        self._errors = botocore.exceptions
        self._options = options
        self._attempt: str | None = None  # a request to a FIFO queue whose reply was lost
        self.what = f"sqs queue {options.queue_url.rpartition('/')[2]}"
        self.extend_seconds = options.visibility_seconds / 2
        self._count = 1
        secret, limit = options.secret_access_key, options.timeout_seconds
        settings = botocore.config.Config(
            connect_timeout=limit, read_timeout=limit + WAIT_SECONDS, retries={"total_max_attempts": 1}
        )
        try:
            self._client = boto3.session.Session().client(
                "sqs",
                region_name=options.region,
                endpoint_url=options.endpoint_url,
                aws_access_key_id=options.access_key_id,
                aws_secret_access_key=None if secret is None else secret.get_secret_value(),
                config=settings,
            )
        except (self._errors.PartialCredentialsError, self._errors.CredentialRetrievalError) as error:
            raise ConfigError(f"sources.{options.name}.access_key_id: {error}; {_KEYS}") from None
        except (self._errors.BotoCoreError, ValueError) as error:
            raise ConfigError(f"sources.{options.name}.region: {error}; set it, or correct endpoint_url") from None

    def close(self) -> None:
        """Close connections."""
        self._client.close()

    def _call(self, name: str, action: str, **parameters: object) -> Any:  # noqa: ANN401 - a reply of the server
        """Return the reply to a request."""
        try:
            return getattr(self._client, name)(**{"QueueUrl": self._options.queue_url, **parameters})
        except self._errors.ClientError as error:
            raise self._refused(error.response.get("Error", {}), action) from error
        except self._errors.BotoCoreError as error:
            why = f"the server cannot be reached ({error}); correct queue_url"
            raise self._error(type(error).__name__, str(error), action, why) from error

    def _refused(self, error: Mapping[str, object], action: str) -> SourceError:
        code, text = str(error.get("Code", "")), str(error.get("Message", ""))
        return self._error(code, code, action, f"the server refuses {action} ({code}: {text})")

    def _error(self, code: str, text: str, action: str, otherwise: str) -> SourceError:
        """The error that stands for a code of the server, or for an error of the library by its name."""
        rows = [(words, why.replace("{}", text).replace("sqs:*", f"sqs:{action}")) for words, why in _REASONS]
        return SourceError(f"sqs queue {self._options.queue_url}: {reason(code, rows, otherwise)}")

    def measure(self) -> None:
        """Ask how many there are, delivered ones included. SQS counts roughly, and does not say how old they are."""
        attributes = self._call("get_queue_attributes", "GetQueueAttributes", AttributeNames=_SIZES).get("Attributes")
        self.unread = sum(int((attributes or {}).get(name, 0)) for name in _SIZES), None

    def fetch(self) -> Fetched:
        """Messages that are there to be delivered."""
        fetched = self._received(self._count, self._options.visibility_seconds)
        again = any(one.before for one in fetched.deliveries)
        if fetched.deliveries:
            self._count = 1 if again else min(2 * self._count, self._options.batch_records)
        return fetched

    def newest(self, count: int) -> Fetched:
        """Some messages, which other workers can receive at once. SQS counts this as a delivery of them."""
        return self._received(min(count, MAX_AT_ONCE), 0)

    def _received(self, count: int, visibility: int) -> Fetched:
        """Messages that are delivered again after so many seconds."""
        deliveries: list[Delivery] = []
        while len(deliveries) < count:
            try:
                received = self._receive(
                    MaxNumberOfMessages=min(MAX_AT_ONCE, count - len(deliveries)),
                    VisibilityTimeout=visibility,
                    WaitTimeSeconds=0 if deliveries else WAIT_SECONDS,
                )
            except SourceError:
                if not deliveries:
                    raise
                break  # the next call raises it again
            deliveries += received
            if not received or visibility == 0:
                break
        return Fetched(self._options.queue_url, self.what, "0", deliveries)

    def _receive(self, **parameters: int) -> list[Delivery]:
        """Return the messages of one request. One to a FIFO queue that failed is repeated under its id.

        Without that, messages whose delivery was lost would hold up their groups until they are delivered again.
        """
        attempt = {}
        if self._options.queue_url.endswith(FIFO):
            self._attempt = self._attempt or uuid.uuid4().hex
            attempt = {"ReceiveRequestAttemptId": self._attempt}
        reply = self._call("receive_message", "ReceiveMessage", AttributeNames=_ABOUT, **attempt, **parameters)
        self._attempt = None
        return list(map(_delivery, reply.get("Messages", ())))

    def acknowledge(self, fetched: Fetched, good: Sequence[Delivery], dead: Sequence[Delivery]) -> None:  # noqa: ARG002
        """Delete messages. One whose time is over is left: it is delivered again."""
        for letter in dead:
            self.copy(letter)
        self._batches("delete_message_batch", "DeleteMessage", fetched.deliveries)

    def copy(self, letter: Delivery) -> None:
        """Copy a dead letter to its queue, if there is one."""
        url, (_, group) = self._options.dead_letters, letter.handle
        if url is None:
            return
        about = {"RagwatchReason": letter.why, "RagwatchQueue": self._options.queue_url}
        place = {}
        if url.endswith(FIFO):  # a copy that is sent again is recognised by its id
            place = {"MessageGroupId": group or str(letter.offset), "MessageDeduplicationId": str(letter.offset)}
        self._call(
            "send_message",
            "SendMessage",
            QueueUrl=url,
            MessageBody=(letter.value or b"").decode("utf-8", "replace"),
            MessageAttributes={name: {"DataType": "String", "StringValue": value} for name, value in about.items()},
            **place,
        )

    def extend(self, deliveries: Sequence[Delivery]) -> bool:
        """Ask the server to wait longer until it delivers messages again."""
        seconds = self._options.visibility_seconds
        name = "change_message_visibility_batch"
        self._batches(name, "ChangeMessageVisibility", deliveries, VisibilityTimeout=seconds)
        return True

    def _batches(self, name: str, action: str, deliveries: Sequence[Delivery], **more: int) -> None:
        for start in range(0, len(deliveries), MAX_AT_ONCE):
            part = enumerate(deliveries[start : start + MAX_AT_ONCE])
            entries = [{"Id": str(place), "ReceiptHandle": one.handle[0], **more} for place, one in part]
            for failed in self._call(name, action, Entries=entries).get("Failed", ()):
                if not failed.get("SenderFault"):
                    raise self._refused(failed, action)


class _Message(TypedDict):
    MessageId: str
    Body: str
    ReceiptHandle: str
    Attributes: NotRequired[dict[str, str]]


def _delivery(message: _Message) -> Delivery:
    about, identity = message.get("Attributes", {}), message["MessageId"]
    try:
        offset = uuid.UUID(identity).int
    except ValueError:  # of another server with this API
        offset = uuid.uuid5(uuid.NAMESPACE_OID, identity).int
    return Delivery(
        offset=offset,
        number=int(about.get("SentTimestamp", 0)),
        value=message["Body"].encode("utf-8", "replace"),
        before=int(about.get("ApproximateReceiveCount", 1)) - 1,
        handle=(message["ReceiptHandle"], about.get("MessageGroupId")),
    )


def build(options: Options) -> BrokerSource:
    """Build a source from its options. Raises ConfigError if the extra is not installed, or the region is missing."""
    return BrokerSource(options, SqsClient)
