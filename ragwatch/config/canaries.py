"""Options of canary suites: schedule, cut-offs, canaries and probe."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from ragwatch import probes
from ragwatch.config import crontab
from ragwatch.config.options import FrozenOptions, Name
from ragwatch.config.suites import canaries, read_suite
from ragwatch.config.text import naming
from ragwatch.config.validation import read_kind, read_model
from ragwatch.errors import ConfigError
from ragwatch.model.units import duration_seconds
from ragwatch.probes.similarity import SimilarityMeasure
from ragwatch.statistics.canary.definition import Canary
from ragwatch.statistics.ranking import TAU

_MIN_INTERVAL_SECONDS = 1.0  # between two runs of a suite
_MAX_JITTER_SECONDS = 86400.0


def _check_schedule(value: str) -> str:
    try:
        seconds = duration_seconds(value)
    except ValueError:
        try:
            crontab.trigger(value)
        except ValueError as error:
            raise ValueError(
                f"{value!r} is neither a duration nor a crontab expression; write one such as 10m or '*/10 * * * *'"
            ) from error
    else:
        if isinstance(seconds, float) and seconds < _MIN_INTERVAL_SECONDS:
            raise ValueError(f"{value!r} would ask without end; write 1s or more")
    return value


def _parse_jitter(value: object) -> object:
    """Convert to seconds; 0 disables the jitter."""
    seconds = None
    with suppress(ValueError):
        seconds = duration_seconds(value)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0.0 <= seconds <= _MAX_JITTER_SECONDS:
        raise ValueError(f"{value!r} is no time from 0s to 1d; write one such as 30s, or 0s for no spread")
    return seconds


class SuitePlace(FrozenOptions):
    """Options of a canary suite, without its canaries and its probe."""

    suite: Name = Field(description="Name of the suite (label `suite`).")
    schedule: Annotated[str, AfterValidator(_check_schedule)] = Field(
        "*/10 * * * *", description="A crontab expression (UTC), or an interval: 10m."
    )
    jitter: Annotated[float, BeforeValidator(_parse_jitter)] = Field(
        30.0, description="Random delay of each run, to spread the load; 0s for none."
    )
    at_start: bool = Field(
        default=True,
        description="Also run at the start (with retries until the service accepts connections), and at a reload that "
        "changes the suite.",
    )
    k: tuple[Annotated[int, Field(ge=1, le=1000)], ...] = Field(
        (1, 3, 5, 10), min_length=1, description="Cut-offs; the largest is the number of contexts to retrieve."
    )
    tau: float = Field(
        TAU, gt=0.0, le=1.0, description="Minimum similarity to an expected text, for contexts without id."
    )
    similarity: SimilarityMeasure = Field(
        SimilarityMeasure.LEVENSHTEIN, description="levenshtein, containment (for other chunk boundaries) or tokens."
    )
    judge: Name | None = Field(None, description="With a probe of kind rag: the judge of the answers; null for none.")
    oracle: bool = Field(default=True, description="Also query the service with the expected contexts, if possible.")


@dataclass(frozen=True, slots=True)
class SuiteConfig:
    """A canary suite: its options, its canaries, and kind and options of its probe."""

    place: SuitePlace
    canaries: tuple[Canary, ...]
    kind: str
    options: BaseModel


def suites(items: object, folder: Path) -> tuple[SuiteConfig, ...]:
    """Validate the list `canaries`; paths of suite files are relative to a folder.

    Raises:
        ConfigError: All errors, one per line.
    """
    if not isinstance(items, list):
        raise ConfigError("canaries: must be a list of suites such as {suite: docs, file: canaries.yaml, probe: {...}}")
    configs: list[SuiteConfig] = []
    for index, item in enumerate(items):
        where = f"canaries[{index}]"
        if not isinstance(item, dict):
            raise ConfigError(f"{where}: must be a mapping with the keys suite, file (or items) and probe")
        others = {"file", "items", "probe"}
        own = {key: value for key, value in item.items() if key not in others}
        place = read_model(SuitePlace, own, where, extra=others)
        if place.suite in {config.place.suite for config in configs}:
            raise ConfigError(f"{where}.suite: {place.suite!r} is taken; names must differ")
        if "probe" not in item:
            raise ConfigError(f"{where}.probe: is missing; say who is asked, such as {{kind: http, url: ...}}")
        probe = read_kind(probes.KINDS, item["probe"], f"{where}.probe")
        configs.append(SuiteConfig(place, _read_canaries(item, where, folder), probe.kind, probe.options))
    return tuple(configs)


def _read_canaries(item: Mapping[str, object], where: str, folder: Path) -> tuple[Canary, ...]:
    if ("file" in item) == ("items" in item):
        raise ConfigError(f"{where}: give either `file` or `items`, one of them")
    if "items" in item:
        return canaries(item["items"], f"{where}.items")
    file = item["file"]
    if not isinstance(file, str) or not file or "\0" in file:
        raise ConfigError(f"{where}.file: {file!r} is not a path; write one")
    with naming(f"{where}.file"):
        return read_suite(folder / file)
