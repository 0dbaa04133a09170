"""Cases of a command line that must end well: what is run, under which conditions, and what may come of it."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from functional.forked import ForkedProcess, handles
from support.patience import DEADLINE, pauses

SECONDS = DEADLINE
CODES = {0, 1, 2, 3, 130}
ROLLOUT_CODES = {11, 12, 13, 21, 22, 23}
MOST_LINES = 20
TERMINATED = [(signal.SIGTERM, 1.0)]  # seconds after it handles the signal: before, it would end at once


@dataclass(frozen=True)
class Ended:
    """How a case ended."""

    argv: tuple[str, ...]
    code: int
    out: str
    err: str

    @property
    def told(self) -> str:
        """Everything it showed, for a message of a test."""
        return f"{' '.join(self.argv)}: {self.code}\n{self.out[-1500:]}\n{self.err[-3000:]}"


class CommandLine:
    """`ragwatch ...` as often as wanted, in a folder, under conditions.

    A stream is a path, `captured` (outputs only), `closed`, or `gone` (a pipe whose reader is gone). A signal is sent
    so many seconds after the start, or, if `handled` is given, after the process handles that one.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(
        self,
        *argv: str | Path,
        stdin: str = os.devnull,
        stdout: str = "captured",
        stderr: str = "captured",
        signals: Sequence[tuple[int, float]] = (),
        handled: int | None = None,
    ) -> Ended:
        """Run one command to its end."""
        words = tuple(map(str, argv))
        hows = (stdin, stdout, stderr)
        with ExitStack() as stack:
            given, out, err = (stack.enter_context(_opened(how, number)) for number, how in enumerate(hows))
            process = ForkedProcess(
                words,
                cwd=self._folder,
                stdin=given.fileno(),
                stdout=out.fileno(),
                stderr=err.fileno(),
                closed=[number for number, how in enumerate(hows) if how == "closed"],
                interrupted=bool(signals),
            )
            process.stderr.close()
            for _ in pauses() if handled is not None else ():
                if process.poll() is not None or handles(process.pid, handled or 0):
                    break
            code = _signalled(process, signals)
            texts = [_text(file) if how == "captured" else "" for file, how in ((out, stdout), (err, stderr))]
        return Ended(words, code, *texts)


def _signalled(process: ForkedProcess, signals: Sequence[tuple[int, float]]) -> int:
    """Send signals in time, and wait for the end: what takes too long is killed. The exit code."""
    started = time.monotonic()
    for number, after in (*signals, (signal.SIGKILL, SECONDS)):
        try:
            return process.wait(max(0.0, started + after - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.send_signal(number)
    return process.wait()


def _opened(how: str, number: int) -> IO[bytes]:
    """A stream of a case; one that is to be closed is opened all the same."""
    if how == "gone":
        reader, writer = os.pipe()
        os.close(reader)
        return os.fdopen(writer, "wb")
    if how == "captured":
        return tempfile.TemporaryFile()
    return Path(os.devnull if how == "closed" else how).open("rb" if number == 0 else "ab")


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")


# Every verb, some of them in several ways. {words} are the stage's.
COMMANDS: dict[str, str] = {
    "once": "run --config {config} --once",
    "kept": "run --config {config} --once --state {state}",
    "run": "run --config {config}",
    "demo": "demo --port 0 --seconds 1",
    "judge": "judge {log}",
    "canary": "canary --config {config}",
    "suggest": "canary suggest --config {config}",
    "gate": "gate {log}",
    "compare": "compare {log} {log}",
    "diagnose": "diagnose --config {config}",
    "causes": "causes --config {config} --since 9999d",
    "rollout": "rollout --config {config}",
    "live": "compare a b --live --config {config} --since 9999d",
    "backtest": "backtest scores.jsonl",
    "estimate": "estimate verdicts.jsonl --labels labels.jsonl",
    "stored": "backtest --config {config}",
    "plan": "plan --per-day 1000 --probability 1",
    "acknowledge": "acknowledge --url {dead}",
    "incident": "incident --since 1h --url {dead}",
    "open": "open --url {dead}",
    "status": "status --url {dead}",
    "mcp": "mcp --url {dead}",
    "import": "label --config {config} --annotator a --import labels.jsonl",
    "export": "label --config {config} --annotator a --export -",
    "label": "label --config {config} --annotator a",
    "rejudge": "rejudge --config {config} --judge embedded",
    "calibrate": "calibrate --config {config}",
    "check": "check --config {config}",
    "map": "init --print {log}",
    "rules": "rules --config {config}",
    "redact": "redact {log} --config {config}",
    "forget": "forget --config {config} nobody",
    "parquet": "export --config {config} --parquet files",
    "failing": "export --config {config} --failing --as gate",
    "views": "store views {config}",
    "copy": "store copy {state} {config}",
    "audit": "audit verify audit.jsonl",
    "init": "init {log} --yes --out -",
    "fetch": "detector fetch a/b fetched --hub {dead}",
    "schema": "config schema",
    "completion": "completion bash",
}


@dataclass(frozen=True)
class Stage:
    """A folder with everything that commands want, and the command line in it."""

    run: CommandLine  # runs a command in the folder
    # holds `ragwatch.yaml`, `state`, `log/rag.jsonl`, `scores.jsonl`, `verdicts.jsonl`, `labels.jsonl` and
    # `audit.jsonl`
    folder: Path
    dead: str  # an address where nobody listens

    def argv(
        self, name: str, *, config: str = "ragwatch.yaml", log: str = "log/rag.jsonl", state: str = "state"
    ) -> list[str]:
        """The words of a command."""
        return COMMANDS[name].format(config=config, log=log, state=state, dead=self.dead).split()

    def drive(
        self, name: str, *more: str, config: str = "ragwatch.yaml", state: str = "state", **conditions: Any
    ) -> Ended:
        """Run a command to its end; a daemon is told to end after a while."""
        if name == "run":
            if "signals" not in conditions:
                conditions["handled"] = signal.SIGTERM
            conditions.setdefault("signals", TERMINATED)
        return self.run(*self.argv(name, config=config, state=state), *more, **conditions)


def ends_well(ended: Ended, codes: set[int] | None = None, *, lines: int = MOST_LINES) -> None:
    """Hold the rule below against a command."""
    assert (fault := fault_of(ended, codes, lines=lines)) is None, f"{fault}: {ended.told}"


def fault_of(ended: Ended, codes: set[int] | None = None, *, lines: int = MOST_LINES) -> str | None:
    """The rule for every command under every condition: an exit code that is documented, a few lines, no traceback.

    Returns what is against it.
    """
    shown = ended.out + ended.err
    for word in ("Traceback", "ExceptionGroup", "Exception ignored", 'File "', "failed with an internal error"):
        if word in shown:
            return f"shows {word}"
    early = ended.code == -signal.SIGTERM and '"started"' not in shown  # before it handles signals, on a busy machine
    more = ROLLOUT_CODES if ended.argv[:1] == ("rollout",) else set()
    if not early and ended.code not in (CODES if codes is None else codes) | more:
        return f"the code is {ended.code}"
    if len(ended.err.splitlines()) > lines:
        return "shows too many lines"
    return None
