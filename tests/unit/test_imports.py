"""Large packages are imported without garbage collection, and collection goes on afterwards."""

from __future__ import annotations

import gc
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from ragwatch.process import without_garbage_collection

pytestmark = pytest.mark.servers


def test_collection_is_paused_within_and_is_afterwards_as_it_was() -> None:
    """Also after an import that failed; what the caller has switched off stays off."""
    for on in (True, False):
        (gc.enable if on else gc.disable)()
        try:
            with suppress(ImportError), without_garbage_collection():
                assert not gc.isenabled()
                raise ImportError
            assert gc.isenabled() is on
        finally:
            gc.enable()


def test_a_command_runs_with_collection_on_and_skips_it_at_exit(tmp_path: Path) -> None:
    """The command itself runs with collection; when Python shuts down, no object is left to collect."""
    code = (
        "import atexit, gc, sys\n"
        "from ragwatch.offline import judge\n"
        "judge.judge_named = lambda *_: sys.exit(3 + gc.isenabled())\n"
        "atexit.register(lambda: open('frozen', 'w').write(str(gc.get_freeze_count())))\n"
        "from ragwatch.__main__ import main\n"
        "sys.argv = ['ragwatch', 'judge']\n"
        "main()\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, input="", capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    assert int((tmp_path / "frozen").read_text(encoding="utf-8")) > 0
