"""Bases of enumerations whose members hold more than their value; a member without it is a type error."""

from enum import StrEnum
from typing import Protocol, Self


class Described(StrEnum):
    """Base of enumerations whose members are `(name, text)`; their value is the name."""

    text: str  # what the member means, as pages and messages say it

    def __new__(cls, name: str, text: str) -> Self:
        """Make a member from its name and its text."""
        member = str.__new__(cls, name)
        member._value_, member.text = name, text
        return member


class Labelled(StrEnum):
    """Base of enumerations whose members name their labels: `REJECTED = "rejected", "source", "reason"`."""

    labels: tuple[str, ...]

    def __new__(cls, value: str, *labels: str) -> Self:
        """Make a member from its value and its labels."""
        member = str.__new__(cls, value)
        member._value_, member.labels = value, labels
        return member


class Named(Protocol):
    """A row of a table: it has a name."""

    @property
    def name(self) -> str:
        """Value of the member that holds the row."""


class RowEnum(StrEnum):
    """Base of enumerations whose members are rows of a table; their value is the name in the row."""

    row: Named  # all that depends on the member alone. An enumeration declares it with the type of its rows.

    def __new__(cls, row: Named) -> Self:
        """Make a member from its row."""
        member = str.__new__(cls, row.name)
        member._value_, member.row = row.name, row
        return member
