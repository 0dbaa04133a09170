"""Every command ends well where its streams do not, and when it is interrupted or terminated, whenever that is.

That is a documented exit code, a few lines, and never a traceback.
"""

import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from functional.endings import CODES, COMMANDS, SECONDS, Ended, Stage, ends_well, fault_of

from ragwatch.commands import cli
from ragwatch.process import INTERRUPTED

LOUD = {
    *("once", "judge", "gate", "compare", "diagnose", "causes", "rollout", "backtest", "estimate", "stored"),
    *("plan", "export", "parquet", "calibrate", "check", "map", "rules"),
}
"""Commands that have something to say on standard output here."""


def now_and_then(names: Iterable[str], first: int) -> list[Any]:
    """Names as parameters, two of three for `make slow` only: streams are handled in one place for all commands."""
    rarely = pytest.mark.slow
    return [name if number % 3 == first else pytest.param(name, marks=rarely) for number, name in enumerate(names)]


def test_every_command_is_driven() -> None:
    """A new verb has to take part; `map` is a former name of `init --print`."""
    assert {words.split()[0] for words in COMMANDS.values()} == set(cli.commands) - {"map"}


@pytest.mark.parametrize("name", now_and_then(COMMANDS, 2))
def test_a_reader_that_is_gone(stage: Stage, name: str) -> None:
    """As with `| head`: the command ends without a word about it, and not as if all were well."""
    ended = stage.drive(name, stdout="gone")
    ends_well(ended)
    wrong_here = {"acknowledge", "copy", "fetch", "incident", "kept", "live", "open", "rejudge", "status", "views"}
    assert "ragwatch:" not in ended.err or name in wrong_here, ended.told
    assert ended.code == 1 or name not in LOUD, ended.told


@pytest.mark.parametrize("name", now_and_then(COMMANDS, 0))
def test_an_output_on_a_full_disk(stage: Stage, name: str) -> None:
    """What could not be written is told, once, and is no success."""
    ended = stage.drive(name, stdout="/dev/full")
    ends_well(ended)
    if name in LOUD:
        assert (ended.code, ended.err.count("ragwatch: standard output: No space left on device")) == (1, 1), ended.told


@pytest.mark.parametrize("name", now_and_then(COMMANDS, 1))
def test_streams_that_are_closed(stage: Stage, name: str) -> None:
    """Closed from the start (`<&- >&- 2>&-`): what is said is lost, files are not written into, the code is right."""
    ended = stage.drive(name, stdin="closed", stdout="closed", stderr="closed")
    ends_well(ended)
    if name in {"judge", "rules", "map", "plan", "once", "run"}:
        assert ended.code == 0, ended.told


@pytest.mark.parametrize("how", ["gone", "/dev/full"])
@pytest.mark.parametrize("name", ["run", "judge", *now_and_then(["once", "check", "acknowledge"], 3)])
def test_a_log_that_takes_nothing(stage: Stage, name: str, how: str) -> None:
    """What cannot be written to standard error is lost, and nothing else: a daemon goes on."""
    ended = stage.drive(name, stderr=how)
    ends_well(ended)
    assert ended.code == {"check": 1, "acknowledge": 1}.get(name, 0), ended.told


# The same as `python -m ragwatch`, but it says when Python itself has started: until then there is no ragwatch.
STARTED = (
    "import os, signal, sys; signal.signal(signal.SIGINT, lambda *_: os._exit(130)); os.write(1, b'.'); "
    "from ragwatch.__main__ import main; main()"
)


@pytest.mark.parametrize(
    "seeds",
    [range(14), *(pytest.param(range(n, n + 100), marks=pytest.mark.slow) for n in range(1000, 2000, 100))],
    ids=lambda seeds: str(seeds.start),
)
def test_a_signal_at_any_moment(stage: Stage, seeds: range) -> None:
    """Reading its configuration, reading, judging, draining, ending: no command shows where it was.

    Each is interrupted after a short while that the seed decides; some once, some twice, some terminated.
    """
    names, faults = list(COMMANDS), []
    for seed in seeds:
        rng = random.Random(seed)
        name = names[seed % len(names)]
        first = rng.choice((0.002, 0.02, 0.2, 1.0)) * rng.uniform(0.1, 1.5)
        number = rng.choice((signal.SIGINT, signal.SIGINT, signal.SIGTERM))
        again = [(number, first + rng.uniform(0.0, 0.1))] if rng.random() < 0.4 else []
        last = [(signal.SIGTERM, first + 2.0)] if name == "run" else []
        ended = stage.drive(name, signals=[(number, first), *again, *last])
        if fault := fault_of(ended, CODES | {-2, -15, 143}):  # 143: a trial removes its state; -2: no handler yet
            faults.append(f"seed {seed}, {number.name} after {first:.4f} s: {fault}: {ended.told}")
    assert faults == [], "\n".join(faults[:3])


def _interrupted_start(folder: Path, argv: list[str], after: float) -> Ended:
    """Interrupt a command so many seconds after Python has started, while it imports."""
    with subprocess.Popen(
        [sys.executable, "-c", STARTED, *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509 - see below
    ) as process:
        try:
            assert process.stdout is not None
            assert select.select([process.stdout], [], [], SECONDS)[0], "it does not start"
            assert os.read(process.stdout.fileno(), 1) == b"."
            time.sleep(after)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    return Ended(tuple(argv), process.returncode, out.decode(), err.decode())


def test_an_interrupt_while_modules_are_imported(stage: Stage) -> None:
    """The first second of a command is imports: an interrupt then ends it at once, with code 130 and no word."""
    for name, after in (("run", 0.0), ("judge", 0.05), ("check", 0.3)):
        ended = _interrupted_start(stage.folder, stage.argv(name), after)
        assert fault_of(ended, {INTERRUPTED, 0, 1}) is None, ended.told
        assert ended.code == INTERRUPTED or after > 0.05, ended.told


WRONG_HERE = {"views", "copy", "rejudge"}
"""Commands that end with 2 by themselves: the state is no PostgreSQL, and no judge is like the configured one."""


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_an_interrupt_while_modules_are_imported_at_length(stage: Stage, name: str) -> None:
    """The same, often."""
    rng = random.Random(f"{name} at length")
    for _ in range(10):
        after = rng.uniform(0.0, 1.5)
        ended = _interrupted_start(stage.folder, stage.argv(name), after)
        if name == "run" and ended.code == 0:
            continue
        late = {2} if name in WRONG_HERE else set()
        assert fault_of(ended, {INTERRUPTED, 0, 1, 3} | late) is None, f"after {after}: {ended.told}"


def test_an_interrupt_while_it_judges(stage: Stage) -> None:
    """What was judged has been printed whole; then it ends with code 130."""
    rows = (stage.folder / "log" / "rag.jsonl").read_text() * 200
    (stage.folder / "long.jsonl").write_text(rows)
    ended = stage.run("judge", "long.jsonl", signals=[(signal.SIGINT, 1.5)])
    assert fault_of(ended, {INTERRUPTED, 0}) is None, ended.told
    assert all(line.endswith("}") for line in ended.out.splitlines()), ended.told


def test_an_early_interrupt_of_the_demo_leaves_no_torn_table(stage: Stage) -> None:
    """On a terminal, before there are figures: no header without rows, the cursor is back, and nothing is left."""
    terminal, inside = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "ragwatch", "demo", "--port", "0"],
        stdin=inside,
        stdout=inside,
        stderr=inside,
        cwd=stage.folder,
        env=os.environ | {"TERM": "xterm-256color", "TMPDIR": str(stage.folder)},
        start_new_session=True,
    ) as process:
        os.close(inside)
        shown, interrupted = b"", False
        try:
            end = time.monotonic() + SECONDS
            while select.select([terminal], [], [], max(0.0, end - time.monotonic()))[0]:
                try:
                    shown += os.read(terminal, 65536)
                except OSError:  # the last of its side is closed
                    break
                if b"questions asked" in shown and not interrupted:
                    interrupted = True  # a second one would end it at once
                    process.send_signal(signal.SIGINT)
            assert process.wait(SECONDS) == 0, shown
        finally:
            process.kill()
            os.close(terminal)
    text = shown.decode("utf-8", "replace")
    assert text.startswith("starting the demo")
    last = text.rpartition("\x1b[2K")[2] if "\x1b[2K" in text else text
    assert ("━━" in last) == ("faithfulness" in last), last
    assert text.rstrip().endswith("\x1b[?25h") or "\x1b[?25h" in last, last
    assert "Traceback" not in text
    assert list(stage.folder.glob("ragwatch-demo-*")) == []
