"""The machine: tail, intake and SQLite store count what was written, whatever happens to files and processes."""

from __future__ import annotations

import faulthandler

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from support.tail_machine import Machine

pytestmark = pytest.mark.uncounted


class NamelessMachine(Machine):
    """Records have no id: where they stand in their stream is all that tells them apart."""

    with_ids = False


class ReuseMachine(Machine):
    """The file system hands inodes of unlinked files to new ones, as ext4 does at once."""

    reuse = True


class CrampedMachine(Machine):
    """One log file may be open at a time: every other one is closed between reads, and rotated while it is closed."""

    open_files = 1


class CrampedNamelessMachine(CrampedMachine):
    """The same, and records have no id."""

    with_ids = False


class CrampedReuseMachine(CrampedMachine):
    """The same, and the inode of a file that was deleted while it was closed may be another file's."""

    reuse = True


class CrampedNamelessReuseMachine(CrampedReuseMachine):
    """All of them."""

    with_ids = False


class NamelessReuseMachine(ReuseMachine):
    """Both."""

    with_ids = False


def run(machine: type[Machine], examples: int, steps: int) -> None:
    """Run the machine on the same examples every time."""
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=chosen)


@pytest.mark.parametrize(
    "machine",
    [Machine, NamelessMachine, CrampedMachine, CrampedNamelessMachine],
    ids=["ids", "places", "ids-cramped", "places-cramped"],
)
def test_what_was_written_is_counted(machine: type[Machine]) -> None:
    """A few examples, the same ones every time; each planted bug of `test_mutants` is caught within fewer."""
    run(machine, 15, 30)


@pytest.mark.slow
@pytest.mark.parametrize(
    "machine",
    [
        Machine,
        NamelessMachine,
        CrampedMachine,
        CrampedNamelessMachine,
        ReuseMachine,
        NamelessReuseMachine,
        CrampedReuseMachine,
        CrampedNamelessReuseMachine,
    ],
    ids=[
        *("ids", "places", "ids-cramped", "places-cramped"),
        *("ids-reuse", "places-reuse", "ids-reuse-cramped", "places-reuse-cramped"),
    ],
)
def test_what_was_written_is_counted_in_many_ways(machine: type[Machine]) -> None:
    """4,000 examples in all, longer ones: longer than pytest's own alarm for tests that hang."""
    faulthandler.dump_traceback_later(1800, exit=True)
    run(machine, 500, 50)
