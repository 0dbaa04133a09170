"""Standard streams: what a log cannot take is lost; full disks and closed streams: tests/functional/test_endings.py."""

from __future__ import annotations

import os
import subprocess
import sys

from support.patience import DEADLINE

from ragwatch.commands.streams import _ErrorOutput

SAID = "print(chr(0xd800)); print(chr(0xd800), file=sys.stderr)"


def test_a_reader_that_is_not_reading_holds_up_nothing() -> None:
    """What does not fit into its pipe is lost."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with _ErrorOutput(writer, "w") as slow:
        assert [slow.write(bytes(65536)) for _ in range(3)] == [65536] * 3
    os.close(reader)


def test_text_that_no_encoding_knows_is_shown() -> None:
    """Half a surrogate pair of a torn log is no reason to end."""
    code = f"import sys; from ragwatch.commands import streams; streams.prepare(); {SAID}; streams.finish()"
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=DEADLINE)
    assert (done.stdout, done.stderr, done.returncode) == ("\\ud800\n", "\\ud800\n", 0)
