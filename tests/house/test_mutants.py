"""Mutants: the machine is no use unless it finds the bugs that tailers have. Each planted one must be caught."""

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from support.tail_machine import Machine, only

from ragwatch.ports import Admission
from ragwatch.sources.tail.content import Content, ContentOpener
from ragwatch.sources.tail.identity import ContentEdges, FilePosition
from ragwatch.stores.sqlite.store import SqliteStore


class CheckpointFirst(SqliteStore):
    """The cursor is stored in a transaction of its own, then the rows: a kill between loses lines."""

    def admit(self, admission: Admission) -> int:
        """Cursor, then rows."""
        super().admit(replace(admission, draws=(), tallies=Counter()))
        return super().admit(admission)


class CheckpointLast(SqliteStore):
    """The rows are stored, then the cursor: a kill between counts lines twice."""

    def admit(self, admission: Admission) -> int:
        """Rows, under the cursor there was (or none), then the cursor."""
        known = self.cursors(admission.source).get(admission.stream, "")
        new = super().admit(replace(admission, cursor=known))
        super().admit(replace(admission, draws=(), tallies=Counter()))
        return new


def fits_any_content(self: FilePosition, edges: ContentEdges | None) -> bool:
    """Identity by inode only: what the bytes were does not matter, as long as the file is no shorter."""
    return self.offset == 0 or edges is not None


def mark_of_first_line(self: ContentEdges) -> str:
    """Fingerprint of the first line only."""
    return blake2b(self.head.partition(b"\n")[0], digest_size=16).hexdigest()


Open = Callable[..., tuple[Content, os.stat_result] | None]


def opening_by_name(real: Open) -> Open:
    """What a name meant when the folder was listed it still means."""

    def open_by_name(self: ContentOpener, path: str, ino: int | None = None) -> tuple[Content, os.stat_result] | None:
        del ino
        return real(self, path)

    return open_by_name


pytestmark = pytest.mark.uncounted


class OneLog(Machine):
    """A service that begins its log with the same line whenever it starts it over."""

    @rule(count=st.integers(1, 6))
    def log(self, count: int) -> None:
        """It writes."""
        self.disk.write("a.jsonl", count, header=True)

    @rule(count=st.integers(1, 12))
    def start_over(self, count: int) -> None:
        """It empties its log and writes."""
        self.disk.truncate("a.jsonl")
        self.disk.write("a.jsonl", count, header=True)


class OneTurn(Machine):
    """A service whose log is rotated so often that the tail sees no file under its first name."""

    @rule(count=st.integers(1, 4))
    def rotate_unseen(self, count: int) -> None:
        """It writes, and logrotate turns."""
        self.disk.write("a.jsonl", count, header=False)
        self._do(self.disk.rotate("a.jsonl", create=True))

    @rule(after=st.integers(4, 12), pace=st.integers(3, 5))
    def turn(self, after: int, pace: int) -> None:
        """It writes, and logrotate turns while the tail looks."""
        self.disk.write("a.jsonl", 1, header=False)
        self._rotate_under_eyes(self.disk.rotate("a.jsonl", create=True), after, pace, 3)


CRASHES = only(Machine, write=2, kill=2)
CONTENTS = only(OneLog, log=1, poll=1, start_over=1)
TURNS = only(OneTurn, rotate_unseen=2, turn=1)


@pytest.mark.parametrize(
    ("machine", "place", "name", "planted"),
    [
        pytest.param(CRASHES, CRASHES, "store_kind", CheckpointFirst, id="checkpoint before commit"),
        *(
            pytest.param(*parts, id=told, marks=pytest.mark.slow)
            for told, *parts in (
                ("inode only", CONTENTS, FilePosition, "fits", fits_any_content),
                ("checkpoint after commit", CRASHES, CRASHES, "store_kind", CheckpointLast),
                ("first line as fingerprint", CONTENTS, ContentEdges, "mark", mark_of_first_line),
                ("opened by name", TURNS, ContentOpener, "open", opening_by_name(ContentOpener.open)),
            )
        ),
    ],
)
def test_a_planted_bug_is_caught(
    machine: type[Machine], place: type, name: str, planted: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some example of the machine fails where the bug is planted; they are the same every time."""
    monkeypatch.setattr(place, name, planted)
    quick = settings(
        max_examples=240,  # some 30 find the rarest bug, and the first that does is the last
        stateful_step_count=20,
        derandomize=True,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    with pytest.raises((AssertionError, ExceptionGroup)):
        run_state_machine_as_test(machine, settings=quick)
