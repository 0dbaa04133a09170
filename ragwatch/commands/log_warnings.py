"""Warnings about a log that can be read but is suspicious: prompts or ids as contexts, unknown routes, rejects."""

from __future__ import annotations

import fcntl
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from ragwatch.core.sample import Sample
from ragwatch.formats.record import Line
from ragwatch.formats.suspicion import suspicions

JSONL_ADVICE = "write one JSON object per line, each with its newline (of a whole array: jq -c '.[]')"
_MAX_ROUTES_SHOWN = 5


def sample_warnings(samples: Sequence[Sample], routes: Sequence[str]) -> Iterator[str]:
    """What is suspicious in samples, each with what to do.

    Args:
        samples: Samples of one source.
        routes: The configured routes.
    """
    yield from (suspicion.text for suspicion in suspicions(samples))
    logged = Counter(sample.route for sample in samples if sample.route)
    if (routes or logged) and samples and not any(sample.route in routes for sample in samples):
        names = ", ".join(repr(route) for route, _ in logged.most_common(_MAX_ROUTES_SHOWN))
        advice = f"list the logged ones: {names}" if names else "the records name none; map the field that does"
        yield f"every record is counted in route other; `routes`: {advice}"


def reject_warnings(rejected: int, records: int, limit: float) -> Iterator[str]:
    """Whether the share of rejected records is above the threshold of the alert on rejects."""
    if records and rejected > limit * records:
        yield (
            f"{rejected / records:.1%} of the records are rejected, above alerts.rejects ({limit:.1%}): "
            "RagwatchSourceRejects would fire; if these lines are no answers (health checks, errors), let `where` skip "
            "them; `ragwatch map FILE` proposes the condition"
        )


def incomplete_file(patterns: Sequence[str]) -> str | None:
    """Why no record of the first matching file with content is complete; None when there is no such file."""
    for path in _files(patterns):
        try:
            with path.open("rb") as file:
                start = file.read(4096).lstrip()
        except OSError:
            continue
        if start:
            fault = "is an incomplete JSON array" if start.startswith(b"[") else "has no complete line"
            return f"{path} {fault}, so it has no complete record; {JSONL_ADVICE}"
    return None


def _files(patterns: Sequence[str]) -> Iterator[Path]:
    for pattern in patterns:
        yield from sorted(path for path in Path("/").glob(str(Path(pattern).absolute())[1:]) if path.is_file())


def lock_owner(directory: Path) -> str | None:
    """Process id in the lock file of a state directory, as text; None when the directory is not locked."""
    try:
        lock = os.open(directory / "ragwatch.lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return os.pread(lock, 32, 0).decode("ascii", "replace").strip() or "unknown"
    finally:
        os.close(lock)
    return None


def format_advice(line: Line) -> Iterator[str]:
    """What to do when no line can be read.

    Args:
        line: The first line.
    """
    text = line.lstrip() if isinstance(line, bytes) else b"{"
    if text.startswith(b"["):
        yield f"the file is a JSON array; {JSONL_ADVICE}"
    elif not text.startswith(b"{") and b"{" in text:
        yield "there is text before the JSON; set prefix: auto in this source"
