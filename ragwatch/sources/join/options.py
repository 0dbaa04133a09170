"""Options of a source of kind `join`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator

from ragwatch.errors import ConfigError
from ragwatch.formats.expressions import compile_expression, predicate
from ragwatch.formats.log_reader import RecordRules
from ragwatch.model.units import duration_seconds, size_bytes
from ragwatch.ports import Kind, Source
from ragwatch.ports.capabilities import HasLogFiles, HasName
from ragwatch.sources import push, tail
from ragwatch.sources.record_options import RecordOptions

INNER_KINDS: Mapping[str, Kind[Source]] = MappingProxyType({"tail": tail, "push": push})
PUSH = "push"
MAX_WITHIN = 12 * 3600.0  # the store deletes parts that have waited for a day

_UNUSED = ("format", "mapping", "split", "start", "timezone", "resolve")


class Options(RecordOptions):
    """Options of a source of kind `join`. Format, mapping, where and split are about the joined records."""

    of: tuple[dict[str, object], ...] = Field(
        min_length=1, description="Sources of the parts, in the order in which their fields take precedence: last wins."
    )
    by: str = Field(min_length=1, description="JMESPath that gives the id that the parts of one request share.")
    within: Annotated[float, BeforeValidator(duration_seconds)] = Field(
        300.0, gt=0, le=MAX_WITHIN, description="How long a part waits for the others."
    )
    parts: int | None = Field(None, ge=2, le=100, description="Number of parts of each request.")
    complete: str | None = Field(
        None, min_length=1, description="JMESPath condition on the joined record; true when no part is missing."
    )
    concat: dict[str, str] = Field(
        {},
        description="For answers that are logged in pieces: field of the joined record, and JMESPath of its pieces in "
        "the parts, which are joined in order. `complete` is then about the last part; without it `within` seconds of "
        "silence end an answer.",
    )
    order: str | None = Field(
        None, min_length=1, description="JMESPath of the position of a piece; by default its time, then its arrival."
    )
    start: Literal["beginning", "end"] = Field(
        "end", description="Where to start in files that exist at the very first start, for all sources in `of`."
    )
    max_waiting: int = Field(20_000, gt=0, description="Requests that wait at once; beyond it the oldest is dropped.")
    max_bytes: Annotated[int, BeforeValidator(size_bytes)] = Field(
        64 << 20, gt=0, description="Size of the parts that wait at once; beyond it the oldest request is dropped."
    )

    @model_validator(mode="after")
    def _inner_sources_are_valid(self) -> Options:
        try:
            compile_expression("by", self.by)
            if self.complete is not None:
                predicate("complete", self.complete)
            for name, expression in self.concat.items():
                compile_expression(f"concat.{name}", expression)
            if self.order is not None:
                compile_expression("order", self.order)
            self.inner()
        except ConfigError as error:
            raise ValueError(str(error)) from error
        if self.order is not None and not self.concat:
            raise ValueError("`order` is about the pieces that `concat` joins; set that too, or remove `order`")
        if self.records is not None:
            raise ValueError("set `records` on a source in `of`: it finds the parts in its lines")
        if self.complete is not None and self.parts is not None:
            raise ValueError("set `complete` or `parts`, not both")
        return self

    @property
    def rules(self) -> RecordRules:
        """How the joined records are read. Their `id` is the id of the request."""
        rules = super().rules
        if not rules.mapping or "id" in rules.mapping:
            return rules
        return replace(rules, mapping={**rules.mapping, "id": "id"})

    @property
    def patterns(self) -> tuple[str, ...]:
        """Paths and globs of all files."""
        inner = [options for _, options in self.inner().values()]
        return tuple(pattern for options in inner if isinstance(options, HasLogFiles) for pattern in options.patterns)

    def inner(self) -> dict[str, tuple[Kind[Source], BaseModel]]:
        """Kind and options of each source in `of`, by name.

        Raises:
            ConfigError: One of them is invalid; the message names its place.
        """
        sources: dict[str, tuple[Kind[Source], BaseModel]] = {}
        for index, item in enumerate(self.of):
            kind, options = _inner(item, f"of[{index}]")
            name = options.name if isinstance(options, HasName) else ""
            if name in sources or "/" in name:
                raise ConfigError(f"of[{index}].name: {name!r} is taken or contains a slash; choose another one")
            if "start" in type(options).model_fields:
                options = options.model_copy(update={"start": self.start})
            sources[name] = kind, options
        if [item.get("kind") for item in self.of].count(PUSH) > 1:
            raise ConfigError("of: has several sources of kind push, whose requests could not be told apart; use one")
        return sources


def _inner(item: Mapping[str, object], where: str) -> tuple[Kind[Source], BaseModel]:
    kind = str(item.get("kind"))
    if kind not in INNER_KINDS:
        raise ConfigError(f"{where}.kind: {kind!r} cannot be joined; use one of: {', '.join(sorted(INNER_KINDS))}")
    for key in _UNUSED:
        if key in item:
            raise ConfigError(f"{where}.{key}: is not used here; set it on the join, beside `of`")
    module = INNER_KINDS[kind]
    try:
        return module, module.Options.model_validate({key: value for key, value in item.items() if key != "kind"})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, (where, *first["loc"])))
        raise ConfigError(f"{place}: {first['msg'].removeprefix('Value error, ')}") from error
