"""Options of a source of kind `sqs`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SecretStr

from ragwatch.sources.messages import Address, BrokerOptions

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
