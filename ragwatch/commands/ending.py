"""Ending: however a command ends, that becomes an exit code and at most a few lines on standard error.

What a person or a machine did is told in one line. What is left is an error of ours: it is logged with its traceback,
and asks to be reported.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator

import click

from ragwatch import __version__
from ragwatch.commands import cli, streams
from ragwatch.commands.terminal import plain
from ragwatch.errors import ConfigError, RagwatchError
from ragwatch.interrupts import INTERRUPTED

OK, BAD, USAGE = 0, 1, 2
_PYTHON = sys.version.split()[0]


def run() -> int:
    """Run the command line to its end, whatever that is. Returns the exit code."""
    code = _run()
    failure = streams.finish()
    if failure is None:
        return code
    if line := _line(failure):
        _tell(line)
    return code or BAD  # what could not be shown must not look like a success


def _run() -> int:
    try:
        return _code(cli.main(standalone_mode=False))
    except SystemExit as ended:  # click and rich end like this where the reader of our output is gone
        streams.silence()
        return _code(ended.code)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return INTERRUPTED
    except BaseException as error:  # noqa: BLE001 - nothing may pass here; a bug is logged with its traceback
        return _failed(error)


def _code(returned: object) -> int:
    return returned if isinstance(returned, int) else OK


def _failed(error: BaseException) -> int:
    """Tell what happened; an exception group is told as what it holds, each thing once."""
    leaves = list(_leaves(error))
    if any(isinstance(each, KeyboardInterrupt) for each in leaves):
        return INTERRUPTED
    if any(streams.is_of_output(each) for each in leaves):
        streams.silence()  # what is left in its buffers would fail again
    lines = dict.fromkeys(_line(each) for each in leaves)
    if None in lines:
        _crashed(error)
        return BAD
    for line in lines:
        if line:
            _tell(line)
    return USAGE if any(isinstance(each, ConfigError) for each in leaves) else BAD


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error


def _line(error: BaseException) -> str | None:
    """What to tell of an error that is not ours, nothing where the reader has gone; None for one of ours."""
    if isinstance(error, RagwatchError):
        return str(error)
    if streams.is_reader_gone(error):
        return ""
    if isinstance(error, OSError):
        what = error.strerror or str(error) or type(error).__name__
        name = _file_of(error)
        return what if name is None else f"{name}: {what}"
    if isinstance(error, MemoryError):
        return "out of memory: give this process more, or smaller files; nothing that was stored is lost"
    if isinstance(error, RecursionError):
        return "something in the input is nested too deeply to be read; flatten it"
    return None


def _file_of(error: BaseException | None) -> object:
    """The file that an error is about: its own, or that of the error which it followed, as closing follows writing."""
    while error is not None:
        if isinstance(error, OSError) and error.filename is not None:
            return error.filename
        error = error.__context__
    return None


def _tell(line: str) -> None:
    click.echo(f"ragwatch: {plain(line)}", err=True)


def _crashed(error: BaseException) -> None:
    if "structlog" in sys.modules and sys.modules["structlog"].is_configured():
        log = sys.modules["structlog"].get_logger()
        log.critical("internal error", version=__version__, python=_PYTHON, exc_info=error)
    else:
        traceback.print_exception(error)
    click.echo(
        f"ragwatch {__version__} failed because of an error of its own (Python {_PYTHON}); "
        "please report it, together with what stands above",
        err=True,
    )
