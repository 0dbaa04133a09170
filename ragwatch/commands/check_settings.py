"""What `ragwatch check` says of settings that need no test: series of segments, who reads criteria, long windows."""

from __future__ import annotations

from collections.abc import Iterator

from ragwatch.config import Config
from ragwatch.judges.llm.calls.options import is_llm

DAY = 86400.0


def setting_notes(config: Config) -> Iterator[tuple[str, bool, str]]:
    """Describe settings: each key, whether all is well, and a text for people."""
    if config.settings.segments:
        yield "segments", True, config.describe_segments()
    if config.settings.criteria:
        yield "criteria", *_criteria(config)
    if (text := _long_windows(config)) is not None:
        yield "estimates.windows", False, text


def _long_windows(config: Config) -> str | None:
    """Which windows are longer than verdicts are kept."""
    days = config.settings.retention.days
    names = [name for name, seconds in config.settings.estimates.windows.items() if seconds > days * DAY]
    if not names:
        return None
    return (
        f"retention.days deletes verdicts after {days:g} days: after a restart, estimates over {', '.join(names)} "
        "contain only these days; set retention.days to the longest window, or give shorter windows"
    )


def _criteria(config: Config) -> tuple[bool, str]:
    """Which judges read the criteria."""
    names = {criterion.name for criterion in config.settings.criteria}
    quantities = {judge.place.name: judge.place.quantities for judge in config.judges if is_llm(judge.options)}
    unread = sorted(names - {name for own in quantities.values() for name in (names if own is None else own)})
    readers = ", ".join(quantities)
    if not readers:
        return False, (
            "no judge reads them, because the embedded judges cannot: their scores stay unknown, with reason not_read; "
            "add a judge of kind claude or openai"
        )
    if unread:
        return False, f"no judge reads {', '.join(unread)}; add them to `quantities` of one of: {readers}"
    default = config.judges[0].place.name
    if default not in quantities:
        return True, (
            f"read by {readers}. Pages and alerts are about the judge {default}, which does not read them; see "
            "`alerts.judge` and `drift.judge`"
        )
    return True, f"read by {readers}"
