"""Reads and validates the YAML configuration.

What is wrong is raised as `ConfigError`, one line `path.to.key: what is wrong, what to write instead` for each.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel

from ragwatch import judges, sources, stores
from ragwatch.config.canaries import SuiteConfig, suites
from ragwatch.config.drift import check_routes, read_anchors
from ragwatch.config.judge_options import JudgeOptions, names_in
from ragwatch.config.model import Settings
from ragwatch.config.text import load_text, naming, resolve_secrets
from ragwatch.config.validation import KindConfig, read_kind, read_model
from ragwatch.errors import ConfigError
from ragwatch.model.sample import OTHER
from ragwatch.pipeline.drift.judge_drift import Anchor
from ragwatch.ports.capabilities import HasDeadline, HasGrpcListener, HasName, KeepsTexts, uses_batches
from ragwatch.ports.sources import GrpcListener
from ragwatch.statistics.segments import series_of_segments

MAX_SERIES = 20_000  # of all segments together; a scrape of them is about 3 MB


@dataclass(frozen=True, slots=True)
class JudgeConfig:
    """A judge: the options that every judge has, its kind, and the options of the kind."""

    place: JudgeOptions
    kind: str
    options: BaseModel


@dataclass(frozen=True, slots=True)
class Config:
    """A valid configuration."""

    settings: Settings
    sources: tuple[KindConfig, ...]
    judges: tuple[JudgeConfig, ...]
    store: KindConfig
    canaries: tuple[SuiteConfig, ...] = ()
    anchors: tuple[Anchor, ...] = ()

    @property
    def texts(self) -> str:
        """Texts of which answers the store keeps after judging: all, failing or none."""
        options = self.store.options
        return options.texts if isinstance(options, KeepsTexts) else "all"

    @property
    def fingerprint(self) -> str:
        """A name of the settings, which changes with them."""
        settings = self.settings.model_dump_json(fallback=str).encode("utf-8", "replace")
        return hashlib.blake2b(settings, digest_size=8).hexdigest()

    def require_texts(self, what: str) -> None:
        """Refuse what needs the texts of all judged answers if the store does not keep them."""
        if self.texts != "all":
            raise ConfigError(
                f"store.texts: is {self.texts}, and {what} needs the texts of all judged answers; set it to all, "
                "and wait for new answers"
            )

    def describe_segments(self) -> str:
        """Say how many series `segments` are exported as, and of what. `ConfigError` if they are too many."""
        settings = self.settings
        values, routes, judges = len(settings.segment_rules.pairs), len({*settings.routes, OTHER}), len(self.judges)
        sizes = {"windows": len(settings.estimates.windows), "quantities": len(settings.quantities)}
        count = series_of_segments(values, len(settings.segments), cohorts=routes * judges, **sizes)
        made_of = (
            f"{values} values with `{OTHER}`, {routes} routes with `{OTHER}`, judges: {judges}, "
            f"windows: {sizes['windows']}, quantities: {sizes['quantities']}"
        )
        if count > MAX_SERIES:
            raise ConfigError(
                f"segments: would be exported as {count:,} series ({made_of}), and at most {MAX_SERIES:,} are allowed; "
                "give fewer values, or fewer keys in `estimates.windows`"
            )
        return f"exported as up to {count:,} series of at most {MAX_SERIES:,} ({made_of})"

    @property
    def fixed(self) -> tuple[object, ...]:
        """Settings that a reload cannot change: state directory, store, listen addresses and audit log."""
        return (self.settings.state, self.store, self.settings.web.listen, self.settings.audit, self.grpc_listeners)

    @property
    def grpc_listeners(self) -> tuple[GrpcListener, ...]:
        """Addresses on which sources receive calls over gRPC."""
        options = (source.options for source in self.sources)
        listeners = (one.grpc_listener for one in options if isinstance(one, HasGrpcListener))
        return tuple(listener for listener in listeners if listener is not None)


def load(path: Path) -> Config:
    """Read and validate a configuration file. `ConfigError` has the errors, with the path of each key."""
    return parse(load_text(path), folder=path.resolve().parent)


def parse(data: Mapping[str, object], *, folder: Path) -> Config:
    """Validate configuration data; `file:` secrets are read relative to `folder`."""
    data = resolve_secrets(data, folder)
    for keys in _PATHS:
        data = _located(data, keys, folder)
    kinds = {"sources", "judges", "store", "canaries"}
    criteria = names_in(data.get("criteria"))
    own = {key: value for key, value in data.items() if key not in kinds}
    settings = read_model(Settings, own, "", extra=kinds, criteria=criteria)
    if settings.web.config_file is not None:  # as other files, relative to the configuration
        web = settings.web.model_copy(update={"config_file": folder / settings.web.config_file})
        settings = settings.model_copy(update={"web": web})
    config = Config(
        settings=settings,
        sources=tuple(
            read_kind(sources.KINDS, item, f"sources[{index}]") for index, item in enumerate(_list(data, "sources"))
        ),
        judges=tuple(
            judge_of(item, f"judges[{index}]", criteria)
            for index, item in enumerate(_list(data, "judges") if "judges" in data else [_EMBEDDED])
        ),
        store=read_kind(stores.KINDS, data.get("store", {}), "store", default="sqlite"),
        canaries=suites(data.get("canaries", []), folder),
    )
    if settings.anchors is not None:
        with naming("anchors.file"):
            config = replace(config, anchors=read_anchors(folder / settings.anchors.file))
    _check_references(config)
    return config


_EMBEDDED = {"name": "embedded", "kind": "lexical"}
_PATHS = (("store", "encryption", "key_file"), ("audit", "file"), ("export", "otlp", "ca_file"))


def _located(data: Mapping[str, object], path: Sequence[str], folder: Path) -> Mapping[str, object]:
    """Make the file name under a path of keys relative to a folder, if there is one."""
    key, *inner = path
    value = data.get(key)
    if inner and isinstance(value, Mapping):
        return {**data, key: _located(value, inner, folder)}
    return {**data, key: str(folder / value)} if not inner and isinstance(value, str) and value else data


def _list(data: Mapping[str, object], key: str) -> list[object]:
    value = data.get(key)
    if isinstance(value, list) and value:
        return value
    fault = "missing" if value is None else "empty" if value == [] else "not a list"
    raise ConfigError(f"{key}: is {fault}; give a list with at least one item")


def judge_of(item: object, where: str = "judge", criteria: frozenset[str] = frozenset()) -> JudgeConfig:
    """Validate one item of the list `judges`, of which `where` is the path."""
    if not isinstance(item, dict):
        raise ConfigError(f"{where}: must be a mapping such as {{name: embedded, kind: lexical}}")
    common = set(JudgeOptions.model_fields)
    place = read_model(JudgeOptions, {key: item[key] for key in item if key in common}, where, criteria=criteria)
    rest = read_kind(judges.KINDS, {key: item[key] for key in item if key not in common}, where, extra=common)
    return JudgeConfig(place, rest.kind, rest.options)


def _check_references(config: Config) -> None:
    settings, options = config.settings, [source.options for source in config.sources]
    _check_unique("sources", [one.name if isinstance(one, HasName) else "" for one in options])
    _check_addresses(config)
    _check_unique("judges", [judge.place.name for judge in config.judges])
    _check_cascade(config)
    _check_timeouts(config)
    _check_judge_names(config)
    check_routes(settings.drift, (*settings.routes, OTHER))
    config.describe_segments()
    by_route: dict[str, Mapping[str, object]] = {
        "sampling.routes": settings.sampling.routes,
        "thresholds.routes": settings.route_thresholds,
        "alerts.slos.routes": settings.alerts.route_slos,
    }
    for key, routes in by_route.items():
        for route in sorted(set(routes) - {*settings.routes, OTHER}):
            raise ConfigError(f"{key}.{route}: is not in `routes`; add it there")


def _check_unique(key: str, names: Sequence[str]) -> None:
    for index, name in enumerate(names):
        if name in names[:index]:
            raise ConfigError(f"{key}[{index}].name: {name!r} is taken; names must differ")


def _check_addresses(config: Config) -> None:
    """Check that no two servers have one address; port 0 is any free one."""
    taken = {config.settings.web.listen: "web.listen"}
    for listener in config.grpc_listeners:
        key = f"sources.{listener.source}.grpc.listen"
        if listener.address in taken and not listener.address.endswith(":0"):
            raise ConfigError(f"{key}: {listener.address} is that of {taken[listener.address]}; write another port")
        taken[listener.address] = key


def _check_cascade(config: Config) -> None:
    """Check `follows`: a cascade has two stages, and at least one judge starts one."""
    judges_by_name = {judge.place.name: judge.place for judge in config.judges}
    for index, judge in enumerate(judges_by_name.values()):
        where = f"judges[{index}]"
        if judge.follows is None:
            if judge.reference:
                raise ConfigError(f"{where}.reference: corrects the judge that this one follows; add `follows`")
            if judge.unsure_probability is not None:
                raise ConfigError(
                    f"{where}.unsure_probability: is about the judge that this one follows; add `follows`"
                )
            continue
        if judge.follows not in judges_by_name or judge.follows == judge.name:
            others = ", ".join(sorted(set(judges_by_name) - {judge.name})) or "there is no other judge"
            raise ConfigError(f"{where}.follows: {judge.follows!r} is not another judge; use one of: {others}")
        if judges_by_name[judge.follows].follows is not None:
            raise ConfigError(f"{where}.follows: {judge.follows!r} follows a judge itself; name one that does not")
    if all(judge.follows for judge in judges_by_name.values()):
        raise ConfigError("judges: each follows another one; let one of them read by itself")


def _check_timeouts(config: Config) -> None:
    timeout = config.settings.judging.timeout
    for index, judge in enumerate(config.judges):
        if not isinstance(judge.options, HasDeadline) or uses_batches(judge.options):
            continue
        seconds = judge.options.deadline_seconds + judge.options.timeout_seconds
        if seconds > timeout:
            raise ConfigError(
                f"judges[{index}]: deadline_seconds and timeout_seconds are {seconds:g} s together, more than "
                f"judging.timeout ({timeout:g} s); raise judging.timeout"
            )


def _check_judge_names(config: Config) -> None:
    names = [judge.place.name for judge in config.judges]
    anchors = config.settings.anchors
    references = {
        "drift.judge": config.settings.drift.judge,
        "anchors.judge": None if anchors is None else anchors.judge,
        **{f"canaries[{index}].judge": suite.place.judge for index, suite in enumerate(config.canaries)},
    }
    for key, name in references.items():
        if name is not None and name not in names:
            raise ConfigError(f"{key}: {name!r} is not a judge; use one of: {', '.join(names)}")
