"""An enumeration of which every member has a text for people, so that a member without one is a type error."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Described(StrEnum):
    """Base of enumerations whose members are `(name, text)`; their value is the name.

    Attributes:
        text: What the member means, as pages and messages say it.
    """

    text: str

    def __new__(cls, name: str, text: str) -> Self:
        """Make a member from its name and its text."""
        member = str.__new__(cls, name)
        member._value_, member.text = name, text
        return member
