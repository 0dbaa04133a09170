"""Options of a source of kind `nats`."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, SecretStr

from ragwatch.sources.messages import Address, BrokerOptions

_NAME = r"^[^\s.*>/\\]+$"


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
