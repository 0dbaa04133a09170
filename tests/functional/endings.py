"""Cases of a command line that must end well: what is run, under which conditions, and what may come of it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from support.patience import DEADLINE

SERVER = Path(__file__).with_name("forkserver.py")
SECONDS = DEADLINE
CODES = {0, 1, 2, 3, 130}
ROLLOUT_CODES = {11, 12, 13, 21, 22, 23}
MOST_LINES = 20
TERMINATED = [[signal.SIGTERM, 1.0]]  # seconds after it handles the signal: before, it would end at once


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
    """`ragwatch ...` as often as wanted, in a folder; a context manager."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server = subprocess.Popen(
            # An interrupt while a module is read leaves the file of the import system to the garbage collector.
            [sys.executable, "-W", "error", "-W", "ignore:unclosed file:ResourceWarning", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.communicate(timeout=SECONDS)

    def __call__(self, *argv: str | Path, **conditions: Any) -> Ended:
        """Run one command to its end."""
        words = tuple(map(str, argv))
        case = {"argv": words, "cwd": str(self._folder), "seconds": SECONDS} | conditions
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(case) + "\n")
        self._server.stdin.flush()
        found = json.loads(self._server.stdout.readline())
        return Ended(words, found["code"], found["out"], found["err"])


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
    "open": "open --url {dead}",
    "status": "status --url {dead}",
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
    """A folder with everything that commands want, and the command line in it.

    Attributes:
        run: Runs a command in the folder.
        folder: Holds `ragwatch.yaml`, `state`, `log/rag.jsonl`, `scores.jsonl`, `verdicts.jsonl`, `labels.jsonl` and
            `audit.jsonl`.
        dead: An address where nobody listens.
    """

    run: CommandLine
    folder: Path
    dead: str

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
