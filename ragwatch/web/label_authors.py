"""Who may label under which name, and how often."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from time import monotonic

from starlette.exceptions import HTTPException
from starlette.requests import Request

from ragwatch.web.authentication import USER

HOUR = 3600.0


def author(request: Request) -> str | None:
    """The authenticated client; None for one that did not say who it is."""
    name: object = request.scope.get(USER)
    return name if isinstance(name, str) else None


def check_author(name: str, user: str | None) -> None:
    """Refuses a label under the name of another person.

    Raises:
        HTTPException: 403.
    """
    if user is not None and name != user:
        raise HTTPException(
            403,
            f"annotator: you are {user}, and labels are stored under that name, not {name!r}; use --annotator {user}",
        )


class LabelRate:
    """Counts the labels of each authenticated annotator in the last hour.

    Args:
        refused: Called with the reason of each refusal.
        clock: Returns seconds.
    """

    def __init__(self, refused: Callable[[str], None], clock: Callable[[], float] = monotonic) -> None:
        self._refused = refused
        self._clock = clock
        self._sent: dict[str, deque[tuple[float, int]]] = {}

    def take(self, user: str | None, labels: int, per_hour: int) -> None:
        """Counts labels, or refuses all of them.

        Raises:
            HTTPException: 429, with `Retry-After`.
        """
        if user is None:
            return
        now, sent = self._clock(), self._sent.setdefault(user, deque())
        while sent and sent[0][0] <= now - HOUR:
            sent.popleft()
        total = sum(count for _, count in sent)
        if total + labels <= per_hour:
            sent.append((now, labels))
            return
        self._refused("labels")
        wait = math.ceil(sent[0][0] + HOUR - now) if sent else int(HOUR)
        raise HTTPException(
            429,
            f"labels: {user} has sent {total} in the last hour, and {labels} more would exceed the {per_hour} of "
            "labels.per_hour; retry later, or send fewer",
            {"Retry-After": str(wait)},
        )
