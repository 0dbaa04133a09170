"""The machine: writers, rotations, kills and full disks in any order, and what must have been counted at the end."""

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ragwatch.model.sample import RejectReason
from ragwatch.sources.tail.identity import FilePosition
from ragwatch.statistics.tally import Tally
from ragwatch.stores.sqlite.store import SqliteStore
from support.mortal import MortalDaemon, open_inodes
from support.shifting import Step, interleaved
from support.toy_disk import ToyDisk

PLAIN = st.sampled_from(["a.jsonl", "b.jsonl"])
ANY = st.sampled_from(["a.jsonl", "b.jsonl", "c.jsonl"])
KIND = st.sampled_from(["create", "none", "copy"])

SHARES = {
    "write": 9,
    "tear": 2,
    "mend": 2,
    "poll": 5,
    "wait": 2,
    "rotate": 2,
    "rotate_under_eyes": 2,
    "replace": 2,
    "kill": 2,
    "judge": 2,
}
"""How often a rule stands in the hat, where not once. Vector's action table: 51 % writes, 19 % reads, 6 % pauses, 10 %
rotations, 5 % truncations, 5 % deletions, the rest exits."""


def weighted(machine: type[Any]) -> type[Any]:
    """Put rules into the hat as often as their shares say."""
    for name, share in SHARES.items():
        for number in range(1, share):
            setattr(machine, f"{name}_{number}", getattr(machine, name))
    return machine


def only(machine: type[Any], **shares: int) -> type[Any]:
    """The machine with these rules alone, each so often in the hat."""
    marked = {name for name in dir(machine) if hasattr(getattr(machine, name), "hypothesis_stateful_rule")}
    rules = {f"{name}_{number}": getattr(machine, name) for name, share in shares.items() for number in range(share)}
    return type(machine.__name__, (machine,), dict.fromkeys(marked) | rules)


@weighted
class Machine(RuleBasedStateMachine):
    """See the module. Class attributes are what variants and planted bugs change."""

    with_ids: ClassVar[bool] = True
    reuse: ClassVar[bool] = False
    store_kind: ClassVar[type[SqliteStore]] = SqliteStore
    open_files: ClassVar[int] = 1000

    def __init__(self) -> None:
        super().__init__()
        self._room = TemporaryDirectory()
        self._root = Path(self._room.name).resolve()
        self.disk = ToyDisk(
            self._root / "logs",
            with_ids=self.with_ids,
            opened=self._opened,
            kept=self._kept,
            places=self._places,
            reuse=self.reuse,
        )

    def _opened(self) -> set[int]:
        return open_inodes(self._root / "logs")

    def _kept(self) -> set[int]:
        return set(self.daemon.stored())

    def _places(self) -> list[FilePosition]:
        return [FilePosition(**place) for place in self.daemon.cursors()]

    @initialize(max_pending=st.sampled_from([4, 1000]), read_bytes=st.sampled_from([200, 1 << 20]))
    def begin(self, max_pending: int, read_bytes: int) -> None:
        """A first start and a first look, on an empty directory: what is rotated from then on is news."""
        kind = self.store_kind
        self.daemon = MortalDaemon(
            self._root / "state",
            self.disk.pattern,
            store_kind=kind,
            max_pending=max_pending,
            read_bytes=read_bytes,
            open_files=self.open_files,
        )
        self.daemon.step()
        self.daemon.now += 1  # the next step looks again

    @rule(name=ANY, count=st.integers(1, 6), header=st.booleans())
    def write(self, name: str, count: int, header: bool) -> None:  # noqa: FBT001 - drawn by name
        """The service logs."""
        self.disk.write(name, count, header=header)

    @rule(name=ANY, share=st.floats(0, 0.99))
    def tear(self, name: str, share: float) -> None:
        """The service's last line is not there in full yet."""
        self.disk.tear(name, share)

    @rule(name=ANY)
    def mend(self, name: str) -> None:
        """Now it is."""
        self.disk.mend(name)

    @rule(steps=st.integers(1, 6))
    def poll(self, steps: int) -> None:
        """The intake loop runs."""
        for _ in range(steps):
            self.daemon.step()

    @rule(seconds=st.sampled_from([0.5, 1.0, 6.0, 60.0]))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.daemon.now += seconds

    @rule(name=PLAIN, create=st.booleans())
    def rotate(self, name: str, create: bool) -> None:  # noqa: FBT001 - drawn by name
        """Rename rotation."""
        self._do(self.disk.rotate(name, create=create))

    @rule(name=PLAIN)
    def copytruncate(self, name: str) -> None:
        """The other rotation."""
        self._do(self.disk.copytruncate(name))

    @rule(name=PLAIN, kind=KIND, after=st.integers(0, 20), pace=st.integers(1, 4), polls=st.integers(1, 6))
    def rotate_under_eyes(self, name: str, kind: str, after: int, pace: int, polls: int) -> None:
        """A rotation, its steps one by one between what the tail asks of the system."""
        self._rotate_under_eyes(self._turn(name, kind), after, pace, polls)

    @rule(name=PLAIN, kind=KIND, after=st.integers(0, 20), pace=st.integers(1, 4), instants=st.integers(0, 60))
    def rotate_and_kill(self, name: str, kind: str, after: int, pace: int, instants: int) -> None:
        """The same, and the tail does not see the end of it."""
        self.daemon.now += 1
        with interleaved(self.disk.root, self._turn(name, kind), after=after, pace=pace):
            self.daemon.step_until_killed(instants)
            self._reborn()

    def _rotate_under_eyes(self, steps: list[Step], after: int, pace: int, polls: int) -> None:
        self.daemon.now += 1  # it looks
        with interleaved(self.disk.root, steps, after=after, pace=pace):
            for _ in range(polls):
                self.daemon.step()

    def _turn(self, name: str, kind: str) -> list[Step]:
        return self.disk.copytruncate(name) if kind == "copy" else self.disk.rotate(name, create=kind == "create")

    @staticmethod
    def _do(steps: list[Step]) -> None:
        for step in steps:
            step()

    @rule(name=ANY)
    def truncate(self, name: str) -> None:
        """Somebody empties a log."""
        self.disk.truncate(name)

    @rule(name=ANY, count=st.integers(1, 12), header=st.booleans())
    def rewrite(self, name: str, count: int, header: bool) -> None:  # noqa: FBT001 - drawn by name
        """The service starts its log over, and is as far as it was before anybody looks."""
        self.disk.truncate(name)
        self.disk.write(name, count, header=header)

    @rule(name=PLAIN)
    def delete(self, name: str) -> None:
        """Somebody removes a log; the next write makes it anew."""
        self.disk.delete(name)

    @rule(name=PLAIN, count=st.integers(0, 3))
    def replace(self, name: str, count: int) -> None:
        """Somebody saves a log in an editor."""
        self.disk.replace(name, count)

    @rule(name=PLAIN)
    def compress(self, name: str) -> None:
        """The newest rotation is compressed."""
        self.disk.compress(name)

    @rule()
    def retarget(self) -> None:
        """The link points elsewhere."""
        self.disk.retarget()

    @rule()
    def restart(self) -> None:
        """SIGTERM, and a new start."""
        self.daemon.stop()
        self._reborn()

    @rule(instants=st.integers(0, 60))
    def kill(self, instants: int) -> None:
        """Kill -9 at any instant between and within reading, admitting and committing."""
        self.daemon.step_until_killed(instants)
        self._reborn()

    def _reborn(self) -> None:
        self.daemon.start()
        self.disk.process_died()

    @precondition(lambda self: not self.daemon.full)
    @rule()
    def fill(self) -> None:
        """The disk of the state directory is full."""
        self.daemon.fill()

    @precondition(lambda self: self.daemon.full)
    @rule()
    def free(self) -> None:
        """It has space again."""
        self.daemon.free()

    @rule(count=st.integers(1, 10), able=st.booleans())
    def judge(self, count: int, able: bool) -> None:  # noqa: FBT001 - drawn by name
        """The judge, slow as it is, gets on."""
        self.daemon.judge(count, able=able)

    @invariant()
    def books_balance(self) -> None:
        """What was seen was accepted or rejected; what was drawn is settled or waits; nothing is counted twice."""
        if not hasattr(self, "daemon"):
            return
        total = self.daemon.total
        assert total(Tally.SEEN) == total(Tally.DRAWN) + total(Tally.REJECTED)
        pending = sum(self.daemon.store.pending().values())
        assert total(Tally.DRAWN) == total(Tally.JUDGED) + total(Tally.UNJUDGED) + pending
        assert total(Tally.REJECTED, RejectReason.DUPLICATE_ID) == 0
        assert total(Tally.DRAWN) <= sum(line > 0 for line in self.disk.written)

    def teardown(self) -> None:
        """At the end everything that still lies in a file is counted, once, and a restart changes nothing."""
        try:
            if hasattr(self, "daemon"):
                self._drain()
                self._check()
                self.daemon.stop()
                assert self._opened() == set()
                self._reborn()
                self._drain()
                self._check()
                assert len(self.daemon.cursors()) <= len(self.disk.names)
        finally:
            with suppress(Exception):
                self.daemon.stop()
            self.disk.close()
            self._room.cleanup()

    def _drain(self) -> None:
        self.daemon.free()
        quiet = 0
        while quiet < 3:
            worked = self.daemon.judge(1000) > 0
            while self.daemon.step():
                worked = True
            self.daemon.now += 10
            quiet = 0 if worked else quiet + 1

    def _check(self) -> None:
        total, disk = self.daemon.total, self.disk
        stored = self.daemon.stored()
        assert len(stored) == len(set(stored)), "a record was counted twice"
        assert set(stored) <= disk.written, "a record was made up"
        assert {line for line in disk.owed if line > 0} <= set(stored), "a record was lost"
        told = total(Tally.RESETS, "deleted_unread") + total(Tally.RESETS, "truncated_unread")
        assert len(disk.lost()) <= told, "a loss that could be known was not counted"
        headers = total(Tally.REJECTED, RejectReason.MISSING_FIELD)
        owed = sum(line < 0 for line in disk.owed)
        assert owed <= headers <= sum(line < 0 for line in disk.written), "a header was lost, or counted twice"
        partial = total(Tally.REJECTED, RejectReason.PARTIAL_AT_ROTATION)
        assert partial <= len(disk.torn), "a torn line was counted twice"
        assert total(Tally.SEEN) == len(stored) + headers + partial, "something was counted that nobody wrote"
