"""Errors of exchanges with an endpoint."""

from __future__ import annotations

from ragwatch.core.canary.definition import Failure
from ragwatch.errors import ExternalError


class ExchangeError(ExternalError):
    """An exchange with an endpoint failed.

    Args:
        reason: Reason that is counted.
        message: Error message; contains neither secrets nor text of the response.
    """

    def __init__(self, reason: Failure, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def shape(message: str) -> ExchangeError:
    """Return the error for a JSON response of unexpected structure."""
    return ExchangeError(Failure.SHAPE, message)
