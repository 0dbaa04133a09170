"""Runs programs of system packages."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from support.patience import DEADLINE


def tool(name: str, *arguments: str | Path, package: str) -> str:
    """Output of a tool that must end well; skips where it is missing."""
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is missing: Debian package `{package}`")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=DEADLINE)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
