"""The manual page ragwatch(1) is written from the program, and formats without a warning."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from ragwatch.commands import cli
from tools.manual import manual
from tools.reference import commands_of

TEXT = manual()


def test_every_command_and_option_is_in_it() -> None:
    """Each command has a section of its own, with a paragraph for each option under all of its names."""
    sections = {section.partition("\n")[0]: section for section in TEXT.split('.SS "')[1:]}
    missing = []
    for path, command in commands_of(cli, ("ragwatch",)):
        words = " ".join(path).replace("-", "\\-")
        own = [section for usage, section in sections.items() if usage.startswith((f"{words} ", f'{words}"'))]
        if len(own) != 1:
            missing.append(words)
            continue
        names = [name.replace("-", "\\-") for option in command.params for name in option.opts if name.startswith("-")]
        missing += [f"{words} {name}" for name in names if f".B {name}" not in own[0] and f", {name}" not in own[0]]
    assert missing == []


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_the_formatter_warns_of_nothing() -> None:
    """Every request and every escape is known to groff, and no line starts one by accident."""
    warnings = [f"-w{kind}" for kind in ("char", "escape", "input", "mac", "missing", "scale", "syntax")]
    words = ["groff", "-man", *warnings, "-Wbreak", "-Tutf8", "-z"]
    done = subprocess.run(words, input=TEXT, capture_output=True, text=True, check=True)
    assert done.stderr == ""
