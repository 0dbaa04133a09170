"""Sources that read from a message broker: one consumer over a thin client for each kind of broker.

Here are the options that all kinds have, and what their clients say where a library is missing or a broker fails.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field

from ragwatch.errors import ConfigError
from ragwatch.sources.record_options import RecordOptions, Size

ALONE_FROM = 3
"""Deliveries from which on a record is in a batch of its own, so that no other is given up with it."""
NO_ANSWER = "the server does not answer in time"


def _no_credentials(value: str) -> str:
    for address in value.split(","):
        if "@" in address.rpartition("://")[2].partition("/")[0]:
            raise ValueError("holds a user or a password, which would be shown; give them as username and password")
    return value


Address = Annotated[str, Field(min_length=1), AfterValidator(_no_credentials)]


class BrokerOptions(RecordOptions):
    """Options that sources of all kinds with a broker have."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)

    start: Literal["beginning", "end"] = Field(
        "end", description="Where the consumer group starts if it does not exist yet."
    )
    batch_records: int = Field(200, ge=1, le=10_000, description="Records read and stored at once.")
    max_record_bytes: Size = Field(4 << 20, gt=0, description="A longer record is counted as `line_too_long`.")
    max_deliveries: int = Field(
        5, ge=2, le=100, description="Deliveries without being stored after which a record is a dead letter."
    )
    timeout_seconds: float = Field(5.0, gt=0, le=60, description="How long an answer of the broker is waited for.")


@contextmanager
def needed(source: str, kind: str, package: str, extra: str) -> Iterator[None]:
    """Import the library of a kind inside. Raises ConfigError: it is not installed."""
    try:
        yield
    except ImportError:
        raise ConfigError(
            f"sources.{source}.kind: {kind} needs the package {package}; run pip install 'ragwatch-exporter[{extra}]'"
        ) from None


def reason(text: str, rows: Sequence[tuple[Sequence[str], str]], otherwise: str, code: str = "") -> str:
    """What went wrong and what to do: of the first row with a word in code or text; `{}` stands for the text."""
    lower = f"{code} {text}".lower()
    return next((why for words, why in rows if any(word in lower for word in words)), otherwise).replace("{}", text)
