"""Options of a source of kind `redis_streams`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, SecretStr

from ragwatch.sources.messages import Address, BrokerOptions


class Options(BrokerOptions):
    """Options of a source of kind `redis_streams`."""

    url: Annotated[Address, Field(pattern=r"^(redis|rediss|unix)://")] = Field(
        "redis://127.0.0.1:6379/0", description="Address of the server; `rediss://` for TLS."
    )
    username: str | None = Field(None, description="User, for servers with ACLs.")
    password: SecretStr | None = Field(None, description="Password.")
    ca_file: Path | None = Field(None, description="Certificates of authorities to trust, for `rediss://`.")
    stream: str = Field(min_length=1, description="Key of the stream.")
    field: str = Field("data", min_length=1, description="Field of an entry that has the record, as a JSON object.")
    group: str = Field("ragwatch", min_length=1, description="Consumer group; created if it does not exist.")
    consumer: str | None = Field(
        None, min_length=1, description="Name in the group, the same after a restart; null for that of the machine."
    )
    claim_idle_seconds: float = Field(
        60.0, gt=0, description="Time after which entries of another consumer are taken over; longer than any commit."
    )
    dead_letters: str | None = Field(
        None, min_length=1, description="Stream of dead letters; null for the name of the stream and `:dead`."
    )

    @property
    def dead_stream(self) -> str:
        """Key of the stream of dead letters."""
        return self.dead_letters or f"{self.stream}:dead"
