"""The machine: tail, intake and SQLite store count what was written, whatever happens to files and processes."""

from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from support.tail_machine import Machine

pytestmark = pytest.mark.uncounted

RECORDS: dict[str, dict[str, Any]] = {"ids": {}, "places": {"with_ids": False}}
"""Without an id, where a record stands in its stream is all that tells it apart."""
FILES: dict[str, dict[str, Any]] = {"": {}, "-cramped": {"open_files": 1}}
"""Where one log file may be open at a time, every other one is closed between reads, and rotated while it is closed."""
INODES: dict[str, dict[str, Any]] = {"": {}, "-reuse": {"reuse": True}}
"""A file system may hand inodes of unlinked files to new ones, as ext4 does at once."""


def run(chosen: dict[str, Any], examples: int, steps: int) -> None:
    """Run the machine on the same examples every time."""
    machine = type("ChosenMachine", (Machine,), chosen)
    limits = settings(
        max_examples=examples,
        stateful_step_count=steps,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=limits)


@pytest.mark.parametrize(("records", "files"), list(product(RECORDS, FILES)))
def test_what_was_written_is_counted(records: str, files: str) -> None:
    """A few examples, the same ones every time; each planted bug of `test_mutants` is caught within fewer."""
    run(RECORDS[records] | FILES[files], 10, 30)


@pytest.mark.parametrize("records", RECORDS)
def test_a_copy_that_is_packed_before_it_is_read_is_read_once(records: str) -> None:
    """An editor saves a log that is half read, and the copy is rotated and compressed at once."""
    state = type("ChosenMachine", (Machine,), RECORDS[records])()
    state.begin(max_pending=4, read_bytes=200)
    state.rewrite(name="a.jsonl", count=6, header=False)
    state.poll(steps=1)
    state.replace(name="a.jsonl", count=1)
    state.rotate_under_eyes(name="a.jsonl", kind="create", after=0, pace=1, polls=1)
    state.compress(name="a.jsonl")
    state.teardown()


@pytest.mark.slow
@pytest.mark.ends_after(1800)
@pytest.mark.parametrize(("records", "files", "inodes"), list(product(RECORDS, FILES, INODES)))
def test_what_was_written_is_counted_in_many_ways(records: str, files: str, inodes: str) -> None:
    """4,000 examples in all, longer ones."""
    run(RECORDS[records] | FILES[files] | INODES[inodes], 500, 50)
