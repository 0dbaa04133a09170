"""Errors, by who must act.

RagwatchError
├── ConfigError       you must change the configuration or the command line (exit code 2)
│   └── AddressError  nothing can be served at an address
├── ForeignError      the other side failed; `permanent` says whether asking again can help
│   ├── SourceError   a log, a stream
│   └── JudgeError    a judge could not read; `reason` is what is counted
├── FormatError       a record is not a sample; `reason` and `field` are what is counted and shown
└── StoreError        our own memory; we stop rather than lie

Anything else is a bug: it crashes loudly, and the supervisor starts the daemon again.
"""

from __future__ import annotations


class RagwatchError(Exception):
    """Anything that ragwatch tells a person in one line instead of a traceback."""


class ConfigError(RagwatchError):
    """The configuration or the command line is wrong: `path.to.key: what is wrong, what to write instead`."""


class AddressError(ConfigError):
    """Nothing can be served at an address.

    Args:
        why: What is wrong with it and what to do, without the key that holds the address.
    """

    def __init__(self, why: str) -> None:
        super().__init__(f"web.listen: {why}")
        self.why = why


class ForeignError(RagwatchError):
    """The other side failed.

    Args:
        message: What happened, for a person.
        permanent: True when asking again cannot help.
    """

    def __init__(self, message: str, *, permanent: bool = False) -> None:
        super().__init__(message)
        self.permanent = permanent


class SourceError(ForeignError):
    """A source of traffic cannot be read."""


class JudgeError(ForeignError):
    """A judge could not read a sample.

    Args:
        reason: Value of `core.verdict.UnjudgedReason` that is counted.
        message: What happened, for a person.
        permanent: True when asking again cannot help.
    """

    def __init__(self, reason: str, message: str, *, permanent: bool = True) -> None:
        super().__init__(message, permanent=permanent)
        self.reason = reason


class FormatError(RagwatchError):
    """A record cannot be read as a sample.

    Args:
        reason: Value of `core.sample.RejectReason` that is counted.
        field: Path of the field at fault, empty when the whole record is.
        message: What is wrong, for a person.
    """

    def __init__(self, reason: str, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.reason = reason
        self.field = field


class StoreError(RagwatchError):
    """Our own memory cannot be trusted or written."""
