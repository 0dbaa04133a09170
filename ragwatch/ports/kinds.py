"""Protocol of a kind: a module that implements a source, judge, probe or store and its options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from pydantic import BaseModel

Built_co = TypeVar("Built_co", covariant=True)


class Kind(Protocol[Built_co]):
    """A module that implements one kind. Each package lists its kinds in a literal dict `KINDS`."""

    @property
    def Options(self) -> type[BaseModel]:  # noqa: N802 - it is a class
        """Configuration model of the kind: frozen, forbids unknown keys, and is the only place of its defaults."""
        ...

    @property
    def build(self) -> Callable[..., Built_co]:
        """Builds the object from its options and the arguments that the `__init__` of the package documents."""
        ...
