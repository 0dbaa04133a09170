"""Failure: why an exchange with an endpoint came to nothing."""

from __future__ import annotations

from ragwatch.core.canary.definition import Failure
from ragwatch.errors import ExternalError


class ExchangeError(ExternalError):
    """An exchange with an endpoint came to nothing.

    Args:
        reason: What is counted.
        message: What happened, for a person; holds no secret and no text of the reply.
    """

    def __init__(self, reason: Failure, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def shape(message: str) -> ExchangeError:
    """The error for a reply that is JSON and something else than expected."""
    return ExchangeError(Failure.SHAPE, message)
