"""The server as a process, for tests and benches."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from support.patience import DEADLINE

KEY = "loopback-key-that-must-not-leak"
TESTS = Path(__file__).parent.parent


def environment() -> dict[str, str]:
    """The environment in which the package can be found. Coverage is not measured there: it is no test."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_PROCESS_")}
    return inherited | {"PYTHONPATH": str(TESTS)}


class LoopbackProcess:
    """The server in a process of its own. As a context manager it is ended, whatever happened.

    Attributes:
        address: Where it serves.
        key: The key it lets in; None: any.
    """

    def __init__(self, key: str | None = KEY) -> None:
        self.key = key
        command = [sys.executable, "-m", "loopback.server", "--port", "0", "--attached"]
        self._process = subprocess.Popen(
            command + (["--judge-key", key] if key else []),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        first = self._process.stdout.readline() if self._process.stdout else ""
        if not first:
            raise RuntimeError(f"the loopback server ended with {self._process.wait()}")
        self.address = first.split()[-1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.communicate(timeout=DEADLINE)

    def control(self, *faults: dict[str, Any] | str, **rules: Any) -> None:
        """Begin a new run: these faults (a kind, or its fields), and other fields of `faults.Control`."""
        self._ask("POST", "/control", _script(faults, rules))

    def change(self, *faults: dict[str, Any] | str, **rules: Any) -> None:
        """Go on with another script: record, batches and caches stay."""
        self._ask("POST", "/control?keep=1", _script(faults, rules))

    def forget(self) -> None:
        """Empty the record; the script goes on."""
        self._ask("DELETE", "/record")

    def record(self, *, bodies: bool = True) -> dict[str, Any]:
        """What it was asked since."""
        found: dict[str, Any] = self._ask("GET", f"/record?bodies={int(bodies)}")
        return found

    def requests(self, path: str = "/v1/messages") -> list[dict[str, Any]]:
        """Requests of one path, in order."""
        return [entry for entry in self.record()["requests"] if entry["path"] == path]

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, method=method)
        with urllib.request.urlopen(request, timeout=DEADLINE) as reply:
            return json.load(reply)


def _script(faults: Sequence[dict[str, Any] | str], rules: Mapping[str, Any]) -> dict[str, Any]:
    return {"faults": [{"kind": fault} if isinstance(fault, str) else fault for fault in faults], **rules}
