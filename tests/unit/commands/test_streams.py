"""Standard streams: what a log cannot take is lost; full disks and closed streams: tests/functional/test_endings.py."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from support.patience import DEADLINE

from ragwatch.terminal.output import _ErrorOutput, _Output, is_output_error, is_reader_gone

SAID = "print(chr(0xd800)); print(chr(0xd800), file=sys.stderr)"


def test_an_error_of_the_output_names_it() -> None:
    """The system does not say which file it could not write."""
    with _Output("/dev/full", "w") as output, pytest.raises(OSError, match="No space left") as caught:
        output.write(b"x")
    assert (is_output_error(caught.value), is_reader_gone(caught.value)) == (True, False)


def test_what_a_log_cannot_take_is_lost() -> None:
    """On a full disk, and what does not fit into the pipe of a reader that is not reading."""
    with _ErrorOutput("/dev/full", "w") as full:
        assert full.write(b"abc") == 3
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with _ErrorOutput(writer, "w") as slow:
        assert [slow.write(bytes(65536)) for _ in range(3)] == [65536] * 3
    os.close(reader)


def test_text_that_no_encoding_knows_is_shown() -> None:
    """Half a surrogate pair of a torn log is no reason to end."""
    code = f"import sys; from ragwatch.terminal import output; output.prepare(); {SAID}; output.finish()"
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=DEADLINE)
    assert (done.stdout, done.stderr, done.returncode) == ("\\ud800\n", "\\ud800\n", 0)
