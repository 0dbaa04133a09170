"""Exception classes, by who has to act.

RagwatchError
├── ConfigError       the configuration or the command line must be changed (exit code 2)
│   └── AddressError  the server cannot listen on an address
├── ExternalError     an external file or service failed; `permanent` says whether a retry can succeed
│   ├── SourceError   a log or a stream
│   └── JudgeError    a judge could not read a sample; `reason` is counted
├── FormatError       a record cannot be converted to a sample; `reason` and `field` are counted and shown
└── StoreError        the store cannot be read or written; the daemon stops rather than report wrong figures
    ├── UnsearchableError      words of texts are searched for, and they are not indexed
    ├── NotLeadingError        another worker leads: nothing was written, and its step does it instead
    └── ReceivedMeanwhileError another worker has received a record of this batch: nothing was written

Any other exception is a bug: it is logged with its traceback, and the supervisor restarts the daemon.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from json import JSONDecodeError

_LOGIN = re.compile(
    r"(?P<start>//)[^\s'\"/]{1,500}@"  # in a URL
    r"|(?<=['\"])(?=[\w/])[^'\"\n@]{0,200}:[^'\"\n]{0,200}@"  # in what should be one, and is quoted
    r"|:(?!\d{1,5}/|//)[^\s'\"]{1,500}@"  # and is not
)


def without_login(text: str) -> str:
    """Return a text without the users and passwords of URLs in it.

    >>> without_login("http://ann:secret@docs:8000/x: no response; is ann@example.org right?")
    'http://***@docs:8000/x: no response; is ann@example.org right?'
    """
    return _LOGIN.sub(r"\g<start>***@", text)


class RagwatchError(Exception):
    """Base class of errors that are shown as one line instead of a traceback. No message shows a login of a URL."""

    def __str__(self) -> str:
        return without_login(super().__str__())


class ConfigError(RagwatchError):
    """The configuration or the command line is wrong: `path.to.key: what is wrong, what to write instead`."""


@contextmanager
def extra_for(key: str, extra: str) -> Iterator[None]:
    """Say in a `ConfigError`, which begins with the key, what to install if an import within the context fails."""
    try:
        yield
    except ImportError as error:
        install = f"run pip install 'ragwatch-exporter[{extra}]'"
        raise ConfigError(f"{key}: needs the extra `{extra}`; {install}") from error


class AddressError(ConfigError):
    """The server cannot listen on an address. The detail says why and what to do, without the key of the address."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"web.listen: {detail}")
        self.detail = detail


class ExternalError(RagwatchError):
    """An external file or service failed; `permanent` when a retry cannot succeed. The message is for people."""

    def __init__(self, message: str, *, permanent: bool = False) -> None:
        super().__init__(message)
        self.permanent = permanent


class SourceError(ExternalError):
    """A source of records cannot be read."""


class JudgeError(ExternalError):
    """A judge could not read a sample. The reason, a value of `statistics.verdict.UnjudgedReason`, is counted."""

    def __init__(self, reason: str, message: str, *, permanent: bool = True) -> None:
        super().__init__(message, permanent=permanent)
        self.reason = reason


class FormatError(RagwatchError):
    """A record cannot be converted to a sample.

    The reason, a value of `model.sample.RejectReason`, is counted. The field is the path of the wrong one, and empty
    when the whole record is wrong.
    """

    def __init__(self, reason: str, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.reason = reason
        self.field = field


class TooManyValuesError(JSONDecodeError):
    """JSON that would take too much memory if it were decoded. Programs that refuse what is no JSON refuse it, too."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "", 0)


class StoreError(RagwatchError):
    """The store cannot be read or written."""


class UnsearchableError(StoreError):
    """Words of texts are searched for, and they are not indexed; the message says why."""


class NotLeadingError(StoreError):
    """This worker does not lead, or not any more: nothing was written."""


class ReceivedMeanwhileError(StoreError):
    """Another worker has stored a record of this batch as received: nothing was written; look its ids up again."""
