"""Doubts: what looks wrong in a log that can be read: prompts or ids for contexts, unknown routes, lost lines."""

from __future__ import annotations

import fcntl
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from ragwatch.core.sample import Sample
from ragwatch.formats.guess import are_ids

ONE_A_LINE = "write one JSON object a line, each with its newline (of a whole array: jq -c '.[]')"
_MOST = 0.5  # share of the samples from which a look is no accident
_QUESTION_CHARS = 15  # a shorter question may well stand in a passage
_ROUTES_SHOWN = 5
_INSTRUCTION = re.compile(
    r"\byou are an? (?:\w+[ -]){0,4}(?:assistant|chatbot|bot|expert|agent|ai)\b"
    r"|\b(?:answer|respond to|reply to) (?:the |this )?(?:user|customer|question|query|following)\b"
    r"|\b(?:use|using|based on) (?:only )?the (?:following|provided|given|above|retrieved)\b"
    r"|\b(?:only|solely) (?:use|answer|on) .{0,40}\b(?:context|documents|passages|sources)\b"
    r"|\bif you (?:do not|don['’]t) know\b|\bdo not make (?:anything |things )?up\b|^system:",
    re.IGNORECASE | re.MULTILINE,
)


def of_samples(samples: Sequence[Sample], routes: Sequence[str]) -> Iterator[str]:
    """What looks wrong in samples, each with what to do.

    Args:
        samples: Some of a source's.
        routes: The configured ones.
    """
    holding = [each for each in samples if any(context.text.strip() for context in each.contexts)]
    if holding and are_ids([context.text.strip() for each in holding for context in each.contexts]):
        yield "ids stand where the texts of contexts should; log the texts that the retriever returned"
    elif holding and sum(map(_holds_prompt, holding)) > _MOST * len(holding):
        yield (
            "a context looks like a whole prompt (it holds the question, or instructions to a model), and all of it "
            "would count as support; log the retrieved passages as a list of their own"
        )
    logged = Counter(each.route for each in samples if each.route)
    if (routes or logged) and samples and not any(each.route in routes for each in samples):
        seen = ", ".join(repr(route) for route, _ in logged.most_common(_ROUTES_SHOWN))
        what = f"list those that are logged: {seen}" if seen else "the records name none; map the field that does"
        yield f"every record falls into route other; `routes`: {what}"


def _holds_prompt(sample: Sample) -> bool:
    asked = " ".join((sample.question or "").casefold().split())
    for context in sample.contexts:
        text = " ".join(context.text.casefold().split())
        if len(asked) >= _QUESTION_CHARS and asked in text:
            return True
        if len(sample.contexts) == 1 and _INSTRUCTION.search(context.text):
            return True
    return False


def of_rejects(rejected: int, records: int, limit: float) -> Iterator[str]:
    """Whether so many records are rejected that the alert on rejects would stand."""
    if records and rejected > limit * records:
        yield (
            f"{rejected / records:.1%} of the records are rejected, above alerts.rejects ({limit:.1%}): "
            "RagwatchSourceRejects would fire; if these lines are no answers (health checks, errors), write answers "
            "to a log of their own, or raise alerts.rejects"
        )


def unended(patterns: Sequence[str]) -> str | None:
    """Why nothing can be read of the first matching file that holds something; None when there is no such file."""
    for path in _files(patterns):
        try:
            with path.open("rb") as file:
                first = file.read(4096).lstrip()
        except OSError:
            continue
        if first:
            what = "is a JSON array that is not ended" if first.startswith(b"[") else "holds no line that is ended"
            return f"{path} {what}, so no record of it is complete; {ONE_A_LINE}"
    return None


def _files(patterns: Sequence[str]) -> Iterator[Path]:
    for pattern in patterns:
        yield from sorted(each for each in Path("/").glob(str(Path(pattern).absolute())[1:]) if each.is_file())


def owner_of(directory: Path) -> str | None:
    """The process that holds a state directory, as it calls itself; None when nobody does."""
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
