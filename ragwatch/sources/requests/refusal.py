"""Why a request with records is not accepted."""

from __future__ import annotations

BUSY_SECONDS = 5
"""After which clients that were refused for lack of room try again."""


class RefusedError(Exception):
    """A request that is not accepted.

    Args:
        status: HTTP status.
        message: What is wrong and what to do.
        retry_seconds: After how many seconds the client should try again; None if that is of no use.
    """

    def __init__(self, status: int, message: str, retry_seconds: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_seconds = retry_seconds

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the response."""
        return {} if self.retry_seconds is None else {"Retry-After": str(self.retry_seconds)}


def stopping() -> RefusedError:
    """The answer to requests while a source is closed."""
    return RefusedError(503, "ragwatch is stopping or reloads its configuration; send it again", BUSY_SECONDS)
