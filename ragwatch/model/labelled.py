"""Enumerations whose members have label names."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Labelled(StrEnum):
    """A string enumeration whose members name their labels, in the order of their values.

    A member is written as its value, followed by its labels: `REJECTED = "rejected", "source", "reason"`.
    """

    labels: tuple[str, ...]

    def __new__(cls, value: str, *labels: str) -> Self:
        """Create a member."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.labels = labels
        return member
