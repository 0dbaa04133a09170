"""What `ragwatch check` says of one part of a configuration."""

from __future__ import annotations

from dataclasses import dataclass, replace

OK, WARNING, SUSPECT, FAILED = "ok", "warning", "suspect", "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one test.

    Attributes:
        subject: Key of the configuration that was tested.
        state: `ok`, `warning`, `suspect` (records are read, but probably wrongly) or `failed`.
        detail: What the test found, as text for people.
        shown: The first samples as they were read, below their records.
        dated: Whether any context of them has the date of its document.
    """

    subject: str
    state: str
    detail: str
    shown: tuple[str, ...] = ()
    dated: bool = False

    def warned(self, text: str) -> Finding:
        """Return this result with a warning."""
        return replace(self, state=WARNING if self.state == OK else self.state, detail=f"{self.detail}; {text}")


def noted(subject: str, detail: str, *, well: bool) -> Finding:
    """Return a result that is a warning where not all is well."""
    return Finding(subject, OK if well else WARNING, detail)
