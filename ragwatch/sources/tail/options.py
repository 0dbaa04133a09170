"""Options of a source of kind `tail`."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pydantic import Field, field_validator, model_validator

from ragwatch.formats.log_reader import RecordRules
from ragwatch.formats.record import known_encoding
from ragwatch.formats.selection import AUTO
from ragwatch.sources.record_options import RecordOptions, Size


class Options(RecordOptions):
    """Options of a source of kind `tail`."""

    prefix: str | None = Field(
        None, min_length=1, description="Text before the JSON object of a line: `auto`, or a regular expression."
    )
    encoding: str | None = Field(
        None, min_length=1, description="Encoding of the files, such as `utf-16` or `cp1252`; by default UTF-8."
    )
    skip_prefix: bool = Field(default=False, description="The older spelling of `prefix: auto`.")
    path: str | list[str] = Field(
        min_length=1, description="File or files to follow; `*`, `?`, `[..]` and `**` match names."
    )
    framing: Literal["auto", "plain", "cri", "docker"] = Field(
        "auto", description="What a container runtime wraps around each record; `auto` detects it for each file."
    )
    documents: bool = Field(
        default=False,
        description="Read a file that is one JSON document over several lines whole, once it is complete; "
        "`run --once` and `check` always do.",
    )
    start: Literal["beginning", "end"] = Field(
        "end", description="Where to start in files that exist at the very first start. Later files are read whole."
    )
    max_line_bytes: Size = Field(
        4 << 20, gt=0, description="A longer record is skipped and counted as `line_too_long`."
    )
    read_bytes: Size = Field(4 << 20, gt=0, description="Bytes read and stored at once.")
    rotate_wait_seconds: float = Field(
        5.0, ge=0, description="How long a file that was renamed or deleted is still read after it last grew."
    )
    scan_seconds: float = Field(
        1.0, ge=0, description="How often directories are scanned. Open files are checked on every poll."
    )

    @field_validator("encoding")
    @classmethod
    def _known_encoding(cls, name: str | None) -> str | None:
        """Check that Python knows the encoding, and that lines can be cut in it."""
        return None if name is None else known_encoding(name)

    @model_validator(mode="after")
    def _one_spelling(self) -> Options:
        if self.skip_prefix and self.prefix not in (None, AUTO):
            raise ValueError("skip_prefix is the older spelling of `prefix: auto`; write `prefix` only")
        return self

    @property
    def rules(self) -> RecordRules:
        """How the lines are read."""
        prefix = AUTO if self.skip_prefix else self.prefix
        return replace(super().rules, prefix=prefix, encoding=self.encoding)

    @property
    def patterns(self) -> tuple[str, ...]:
        """All paths and globs."""
        return (self.path,) if isinstance(self.path, str) else tuple(self.path)

    @property
    def skips_existing(self) -> bool:
        """Whether content that exists at the very first start is skipped."""
        return self.start == "end"

    @property
    def window(self) -> int:
        """Bytes within which a record that is split into framed parts must end: escapes make text up to 6 x longer."""
        return max(self.read_bytes, 8 * self.max_line_bytes)
