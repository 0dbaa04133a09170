"""Options of a source of kind `tail`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from ragwatch.model.units import size_bytes
from ragwatch.sources.record_options import LineOptions

_Size = Annotated[int, BeforeValidator(size_bytes)]


class Options(LineOptions):
    """Options of a source of kind `tail`."""

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
    max_line_bytes: _Size = Field(
        4 << 20, gt=0, description="A longer record is skipped and counted as `line_too_long`."
    )
    read_bytes: _Size = Field(4 << 20, gt=0, description="Bytes read and stored at once.")
    rotate_wait_seconds: float = Field(
        5.0, ge=0, description="How long a file that was renamed or deleted is still read after it last grew."
    )
    scan_seconds: float = Field(
        1.0, ge=0, description="How often directories are scanned. Open files are checked on every poll."
    )

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
