"""Kinds: how a room is told what it may be made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from pydantic import BaseModel

Made_co = TypeVar("Made_co", covariant=True)


class Kind(Protocol[Made_co]):
    """What a module that is a kind offers. A room lists its kinds in a literal dict `KINDS`."""

    @property
    def Options(self) -> type[BaseModel]:  # noqa: N802 - it is a class
        """The kind's configuration: a frozen model that refuses unknown keys. Defaults live here and nowhere else."""
        ...

    @property
    def build(self) -> Callable[..., Made_co]:
        """Options (and what the room's `__init__` names beside them) to the thing itself."""
        ...
