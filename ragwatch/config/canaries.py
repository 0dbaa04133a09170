"""Options of canary suites, and their canaries from YAML, JSONL or the configuration itself.

A suite file is not configuration: `${NAME}` and `file:` in a query are not replaced. Errors name file and item.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import orjson
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from ragwatch import probes
from ragwatch.config import crontab
from ragwatch.config.options import FrozenOptions, Name, must
from ragwatch.config.text import MAX_BYTES, load_text, naming, read_lines
from ragwatch.config.validation import read_kind, read_model
from ragwatch.errors import ConfigError
from ragwatch.model.units import duration_seconds
from ragwatch.probes.similarity import SimilarityMeasure
from ragwatch.statistics.canary.definition import NOTHING_EXPECTED, Canary, Category, Expected, Grade, name_of
from ragwatch.statistics.ranking import TAU

MAX_CANARIES = 10_000
MAX_JSONL_BYTES = 16 * MAX_BYTES
_GRADES = {"relevant": Grade.RELEVANT, "highly_relevant": Grade.HIGHLY_RELEVANT}


def _reject_text(value: object) -> object:
    if isinstance(value, bool | str):
        raise ValueError(f"{value!r} is not a number; write one")  # noqa: TRY004 - pydantic wants ValueError
    return value


Text = Annotated[str, must(str.strip, "is empty; write a text")]
Number = Annotated[float, BeforeValidator(_reject_text)]


class ExpectedItem(FrozenOptions):
    """One expected context in a file: by id, by text, or both."""

    id: Text | None = Field(None, description="Id of the document.")
    text: Text | None = Field(None, description="Its text, where contexts have no id.")
    grade: Literal["relevant", "highly_relevant"] = Field(
        "relevant", description="relevant or highly_relevant, for NDCG."
    )


def _parse_expected(value: object) -> object:
    return {"id": str(value)} if isinstance(value, str | int) and not isinstance(value, bool) else value


class CanaryItemOptions(FrozenOptions):
    """One canary in a file; see `ragwatch.statistics.canary.definition.Canary` for the meaning of the keys."""

    query: Text = Field(description="The question that is sent.")
    expected: tuple[Annotated[ExpectedItem, BeforeValidator(_parse_expected)], ...] = Field(
        (), description="Contexts that answer it: ids, or {id, text, grade}."
    )
    name: Text | None = Field(None, max_length=128, description="Name in logs and on pages; null for the query.")
    category: Category | None = Field(
        None,
        description="simple_factual (1 or 2 expected contexts), complex_factual (3 to 5), procedural (5 to 10), "
        "entity_centric (3 to 5), comparative (2 to 4), negative (none), temporal (none until the answer is "
        "indexed).",
    )
    min_relevance_score: Number | None = Field(
        None, description="Minimum score of the retriever for an expected context."
    )
    max_relevance_score: Number | None = Field(
        None, description="For category negative: a passage with this score is wrong; without it, any is."
    )
    min_recall: Number = Field(1.0, gt=0.0, le=1.0, description="Recall below which the canary is degraded.")
    reference: Text | None = Field(None, description="Reference answer, for the correctness of the answer.")
    tags: tuple[Text, ...] = Field((), description="Words to find it by.")

    @property
    def kind(self) -> Category:
        """The category; `expected: []` alone means a negative canary."""
        empty = "expected" in self.model_fields_set and not self.expected
        return self.category or (Category.NEGATIVE if empty else Category.SIMPLE_FACTUAL)

    @property
    def relevant_from(self) -> float | None:
        """The score from which a passage is relevant, whichever key it is written as."""
        if self.max_relevance_score is None:
            return self.min_relevance_score
        if self.kind not in NOTHING_EXPECTED or self.expected:
            raise ValueError("max_relevance_score: is for negative canaries; write min_relevance_score")
        if self.min_relevance_score is not None:
            raise ValueError("max_relevance_score: says the same as min_relevance_score here; leave one of them out")
        return self.max_relevance_score


def read_suite(path: Path) -> tuple[Canary, ...]:
    """Read the canaries of a file: the list `items:` in YAML, or one JSON object per line if its suffix is `.jsonl`."""
    if path.suffix == ".jsonl":
        with suppress(OSError):  # `read_lines` says what is wrong
            if path.stat().st_size > MAX_JSONL_BYTES:
                raise ConfigError(f"{path.name}: larger than {MAX_JSONL_BYTES} bytes; split the suite")
        lines = read_lines(path, lambda line, number: (orjson.loads(line), f"{path.name} line {number}"))
        return _canaries([item for item, _ in lines], [place for _, place in lines], path.name)
    data = load_text(path)
    for key in data:
        if key != "items":
            raise ConfigError(f"{path.name}: {key}: is not a known key; use `items`, the list of canaries")
    return canaries(data.get("items"), f"{path.name}: items")


def canaries(items: object, where: str) -> tuple[Canary, ...]:
    """Read the canaries of a list; `where` is its path in the configuration, for errors."""
    if not isinstance(items, list):
        raise ConfigError(f"{where}: must be a list of canaries such as {{query: ..., expected: [id]}}")
    return _canaries(items, [f"{where}[{index}]" for index in range(len(items))], where)


def _canaries(items: Sequence[object], places: Sequence[str], where: str) -> tuple[Canary, ...]:
    if not items:
        raise ConfigError(f"{where}: is empty; give at least one canary")
    if len(items) > MAX_CANARIES:
        raise ConfigError(f"{where}: {len(items)} canaries, more than {MAX_CANARIES}; split the suite")
    errors: list[str] = []
    valid: list[Canary] = []
    names: dict[str, str] = {}
    for item, place in zip(items, places, strict=True):
        try:
            canary = _canary(item, place)
        except ConfigError as error:
            errors.append(str(error))
            continue
        if canary.name in names:
            errors.append(f"{place}.name: {canary.name!r} is taken by {names[canary.name]}; give another `name`")
        names.setdefault(canary.name, place)
        valid.append(canary)
    if errors:
        raise ConfigError("\n".join(errors))
    return tuple(valid)


def _canary(item: object, place: str) -> Canary:
    if not isinstance(item, Mapping):
        raise ConfigError(f"{place}: must be a mapping such as {{query: ..., expected: [id]}}")
    options = read_model(CanaryItemOptions, item, place)
    try:
        return Canary(
            options.name or name_of(options.query),
            options.query,
            tuple(_context(context, f"{place}.expected[{index}]") for index, context in enumerate(options.expected)),
            category=options.kind,
            min_relevance_score=options.relevant_from,
            min_recall=options.min_recall,
            reference=options.reference,
            tags=options.tags,
        )
    except ValueError as error:
        raise ConfigError(f"{place}: {error}") from error


def _context(item: ExpectedItem, place: str) -> Expected:
    try:
        return Expected(item.id, item.text, _GRADES[item.grade])
    except ValueError as error:
        raise ConfigError(f"{place}: {error}") from error


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
    """Validate the list `canaries`; paths of suite files are relative to a folder."""
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
