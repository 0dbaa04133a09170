"""Imports of large packages without garbage collection, which takes a third of their time and frees nothing.

Modules, classes and functions stay until the process ends, but each collection meanwhile traverses all of them.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Pause automatic garbage collection within the context; it goes on afterwards if it was on before."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def skip_garbage_at_exit() -> None:
    """Exclude all objects from the collections at interpreter shutdown, which take as long as those during imports.

    For the end of `main`: the operating system frees the memory.
    """
    gc.freeze()
