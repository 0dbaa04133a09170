"""What became of the records of one request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragwatch.ports import Rejection


@dataclass(frozen=True, slots=True)
class Outcome:
    """What intake did with the records of one request.

    Attributes:
        rejections: Rejected records, by index.
        resent: How many were received before.
    """

    rejections: Sequence[tuple[int, Rejection]] = ()
    resent: int = 0
