"""Standard streams: closed ones are opened, an error of the output names it, and what a log cannot take is lost."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.patience import DEADLINE

from ragwatch.commands.streams import _ErrorOutput, _Output, is_output_error, is_reader_gone

PREPARED = "import os, sys; from ragwatch.commands import streams; streams.prepare(); "


def test_an_error_of_the_output_names_it() -> None:
    """The system does not say which file it could not write."""
    with _Output("/dev/full", "w") as output, pytest.raises(OSError, match="No space left") as caught:
        output.write(b"x")
    assert is_output_error(caught.value)
    assert not is_reader_gone(caught.value)
    assert is_reader_gone(BrokenPipeError(errno.EPIPE, "", "standard output"))
    assert not is_reader_gone(BrokenPipeError(errno.EPIPE, ""))


def test_what_a_log_cannot_take_is_lost(tmp_path: Path) -> None:
    """A full disk, and a reader that is not reading; everything else arrives."""
    with _ErrorOutput("/dev/full", "w") as full:
        assert full.write(b"abc") == 3
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with _ErrorOutput(writer, "w") as slow:
        while os.get_blocking(writer) is False and slow.write(bytes(65536)) == 65536 and not _is_full(writer):
            pass
        assert slow.write(bytes(10)) == 10
    os.close(reader)
    with _ErrorOutput(tmp_path / "log", "w") as log:
        assert log.write(b"abc") == 3
    assert (tmp_path / "log").read_bytes() == b"abc"


def _is_full(writer: int) -> bool:
    try:
        os.write(writer, b"x")
    except BlockingIOError:
        return True
    return False


def _run(code: str, shell: str = "") -> subprocess.CompletedProcess[str]:
    words = ["sh", "-c", f'"$0" -c "$1" {shell}', sys.executable, PREPARED + code]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=DEADLINE)


def test_closed_streams_are_opened() -> None:
    """A file that is opened later does not get the number of a stream; reading finds nothing, writing goes nowhere."""
    code = (
        "print(1); print(2, file=sys.stderr); sys.exit(10 * os.open('/dev/null', os.O_RDONLY) + len(sys.stdin.read()))"
    )
    assert _run(code, "<&- >&- 2>&-").returncode >= 30


def test_text_that_no_encoding_knows_is_shown() -> None:
    """Half a surrogate pair of a torn log is no reason to end."""
    found = _run("print(chr(0xd800)); print(chr(0xd800), file=sys.stderr); streams.finish()")
    assert (found.stdout, found.stderr, found.returncode) == ("\\ud800\n", "\\ud800\n", 0)


def test_what_is_left_at_the_end_is_written_or_told() -> None:
    """`finish` returns why the rest could not be written, and Python's own end does not complain again."""
    found = _run("sys.stdout.write('x'); sys.exit(streams.finish().errno)", ">/dev/full")
    assert (found.returncode, found.stderr) == (errno.ENOSPC, "")
