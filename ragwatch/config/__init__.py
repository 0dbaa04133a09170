"""Configuration: YAML in, a frozen Config out. Whatever is wrong is told as `path.to.key: what, and what instead`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ragwatch import judges, sources, stores
from ragwatch.config.canaries import SuiteConfig, suites
from ragwatch.config.drift import check_routes, read_anchors
from ragwatch.config.model import JudgeOptions, Settings
from ragwatch.config.text import explain_all, load_text, resolve_secrets
from ragwatch.core.sample import OTHER
from ragwatch.errors import ConfigError
from ragwatch.pipeline.drift.anchors import Anchor
from ragwatch.ports import Kind

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class JudgeConfig:
    """One judge: its place among the others, and the options of its kind."""

    place: JudgeOptions
    kind: str
    options: BaseModel


@dataclass(frozen=True, slots=True)
class KindConfig:
    """A kind's name and its options."""

    kind: str
    options: BaseModel


@dataclass(frozen=True, slots=True)
class Config:
    """A whole, valid configuration."""

    settings: Settings
    sources: tuple[KindConfig, ...]
    judges: tuple[JudgeConfig, ...]
    store: KindConfig
    canaries: tuple[SuiteConfig, ...] = ()
    anchors: tuple[Anchor, ...] = ()

    @property
    def fixed(self) -> tuple[Any, ...]:
        """What a reload cannot change, because the process holds it: state directory, store and address."""
        return (self.settings.state, self.store, self.settings.web.listen)


def load(path: Path) -> Config:
    """Read and check a configuration file.

    Raises:
        ConfigError: The first thing that is wrong, with its place.
    """
    return parse(load_text(path), folder=path.resolve().parent)


def parse(data: Mapping[str, Any], *, folder: Path) -> Config:
    """Check configuration data; `file:` secrets are read relative to `folder`.

    Raises:
        ConfigError: Everything that is wrong, one line each.
    """
    data = resolve_secrets(data, folder)
    kinds = {"sources", "judges", "store", "canaries"}
    settings = _model(Settings, {key: value for key, value in data.items() if key not in kinds}, "", extra=kinds)
    config = Config(
        settings=settings,
        sources=_sources(_list(data, "sources")),
        judges=_judges(_list(data, "judges") if "judges" in data else [{"name": "embedded", "kind": "lexical"}]),
        store=_kind(stores.KINDS, data.get("store", {"kind": "sqlite"}), "store"),
        canaries=suites(data.get("canaries", []), folder, model=_model, kind=_kind),
        anchors=() if settings.anchors is None else read_anchors(folder / settings.anchors.file),
    )
    _check_names(config)
    return config


def _list(data: Mapping[str, Any], key: str) -> list[Any]:
    value = data.get(key)
    if not isinstance(value, list) or not value:
        wrong = "missing" if value is None else "empty" if value == [] else "not a list"
        raise ConfigError(f"{key}: is {wrong}; give a list with at least one item")
    return value


def _sources(items: list[Any]) -> tuple[KindConfig, ...]:
    return tuple(_kind(sources.KINDS, item, f"sources[{index}]") for index, item in enumerate(items))


def _judges(items: list[Any]) -> tuple[JudgeConfig, ...]:
    return tuple(judge_of(item, f"judges[{index}]") for index, item in enumerate(items))


def judge_of(item: object, where: str = "judge") -> JudgeConfig:
    """Check one judge, as it stands in the list `judges`.

    Raises:
        ConfigError: Everything that is wrong with it.
    """
    if not isinstance(item, dict):
        raise ConfigError(f"{where}: must be a mapping such as {{name: embedded, kind: lexical}}")
    common = set(JudgeOptions.model_fields)
    place = _model(JudgeOptions, {key: value for key, value in item.items() if key in common}, where)
    rest = _kind(judges.KINDS, {key: value for key, value in item.items() if key not in common}, where, extra=common)
    return JudgeConfig(place, rest.kind, rest.options)


def _kind(
    kinds: Mapping[str, Kind[Any]], item: object, where: str, *, extra: AbstractSet[str] = frozenset()
) -> KindConfig:
    if not isinstance(item, dict):
        raise ConfigError(f"{where}: must be a mapping with a key `kind`")
    kind = item.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        raise ConfigError(f"{where}.kind: {kind!r} is not known; use one of: {', '.join(sorted(kinds))}")
    options = {key: value for key, value in item.items() if key != "kind"}
    return KindConfig(kind, _model(kinds[kind].Options, options, where, extra={*extra, "kind"}))


def _model(model: type[M], data: Mapping[str, Any], where: str, *, extra: AbstractSet[str] = frozenset()) -> M:
    """Validate `data`; `extra` names keys that are read elsewhere, and are offered for a misspelt one as well."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        lines = explain_all(error.errors(include_url=False), where, lambda path: _known(model, path, extra))
        raise ConfigError("\n".join(lines)) from error


def _known(model: type[BaseModel], path: Sequence[object], extra: AbstractSet[str]) -> list[str]:
    """Keys of the mapping in which a path ends."""
    for part in path[:-1]:
        field = model.model_fields.get(str(part))
        inner = None if field is None else field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            model, extra = inner, frozenset()
    return sorted({*model.model_fields, *extra})


def _check_names(config: Config) -> None:
    for room, names in (
        ("sources", [getattr(each.options, "name", "") for each in config.sources]),
        ("judges", [each.place.name for each in config.judges]),
    ):
        for index, name in enumerate(names):
            if name in names[:index]:
                raise ConfigError(f"{room}[{index}].name: {name!r} is taken; names must differ")
    _check_followers(config)
    _check_patience(config)
    _check_readers(config)
    check_routes(config.settings.drift, (*config.settings.routes, OTHER))
    unknown = set(config.settings.sampling.routes) - {*config.settings.routes, "other"}
    for route in sorted(unknown):
        raise ConfigError(f"sampling.routes.{route}: is not in `routes`; add it there")


def _check_followers(config: Config) -> None:
    places = {each.place.name: each.place for each in config.judges}
    for index, place in enumerate(places.values()):
        where = f"judges[{index}]"
        if place.follows is None:
            if place.unsure_probability is not None:
                raise ConfigError(
                    f"{where}.unsure_probability: is about the judge that this one follows; add `follows`"
                )
            continue
        if place.follows not in places or place.follows == place.name:
            others = ", ".join(sorted(set(places) - {place.name})) or "none there is"
            raise ConfigError(f"{where}.follows: {place.follows!r} is not another judge; use one of: {others}")
        if places[place.follows].follows is not None:
            raise ConfigError(f"{where}.follows: {place.follows!r} follows a judge itself; name one that does not")
    if all(place.follows for place in places.values()):
        raise ConfigError("judges: each follows another one; let one of them read by itself")


def _check_patience(config: Config) -> None:
    most = config.settings.judging.timeout
    for index, each in enumerate(config.judges):
        parts = [getattr(each.options, key, 0.0) for key in ("deadline_seconds", "timeout_seconds")]
        if sum(parts) > most and getattr(each.options, "urgency", "normal") == "normal":
            raise ConfigError(
                f"judges[{index}]: deadline_seconds and timeout_seconds are {sum(parts):g} s together, more than "
                f"judging.timeout ({most:g} s); raise judging.timeout"
            )


def _check_readers(config: Config) -> None:
    known = [each.place.name for each in config.judges]
    anchors = config.settings.anchors
    asked = {
        "drift.judge": config.settings.drift.judge,
        "anchors.judge": None if anchors is None else anchors.judge,
        **{f"canaries[{index}].judge": each.place.judge for index, each in enumerate(config.canaries)},
    }
    for where, name in asked.items():
        if name is not None and name not in known:
            raise ConfigError(f"{where}: {name!r} is not a judge; use one of: {', '.join(known)}")
