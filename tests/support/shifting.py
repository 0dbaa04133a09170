"""Names that change hands while a tail looks: the steps of a rotation fall between its own calls of the system."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

Step = Callable[[], Any]
CALLS = ("open", "stat", "scandir")


@contextmanager
def interleaved(folder: Path, steps: Iterable[Step], *, after: int, pace: int = 1) -> Iterator[None]:
    """Every look into a folder may find it changed: steps are done before calls of the system that name it.

    Args:
        folder: Calls with other paths do not count.
        steps: What somebody does meanwhile, in this order. What is left of it is done in the end.
        after: Calls that are let through before the first step.
        pace: Steps between two later calls.
    """
    left = deque(steps)
    calls = 0
    busy = False

    def call(real: Callable[..., Any], *args: Any, **options: Any) -> Any:
        nonlocal calls, busy
        if not busy and str(args[0]).startswith(str(folder)):
            calls, busy = calls + 1, True  # the steps themselves are no looks
            for _ in range(pace if calls > after else 0):
                if left:
                    left.popleft()()
            busy = False
        return real(*args, **options)

    with ExitStack() as patches:
        for name in CALLS:
            patches.enter_context(patch.object(os, name, partial(call, getattr(os, name))))
        yield
    while left:
        left.popleft()()


def shift(path: Path, *, create: bool = True) -> list[Step]:
    """The steps of one turn of logrotate: `.2` to `.3`, `.1` to `.2`, the log to `.1`, and a new one."""
    numbers = sorted((int(each.suffix[1:]) for each in path.parent.glob(f"{path.name}.*[0-9]")), reverse=True)
    moves = [(Path(f"{path}.{number}"), Path(f"{path}.{number + 1}")) for number in numbers]
    renames: list[Step] = [partial(old.rename, new) for old, new in (*moves, (path, Path(f"{path}.1")))]
    return [*renames, path.touch] if create else renames


def shift_copies(path: Path) -> list[Step]:
    """The same with `copytruncate`: the copy is made in three steps, and is empty at first."""
    copy = Path(f"{path}.1")

    def fill(share: float) -> None:
        content = path.read_bytes()
        copy.write_bytes(content[: int(len(content) * share)])

    return [*shift(path, create=False)[:-1], *(partial(fill, share) for share in (0, 0.5, 1)), partial(_empty, path)]


def _empty(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(0)
