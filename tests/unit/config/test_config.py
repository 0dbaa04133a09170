"""Configuration: what may be left out, what is filled in, and what a reload may change."""

from pathlib import Path
from typing import Any

import pytest

from ragwatch.config import Config, load, parse
from ragwatch.errors import ConfigError
from ragwatch.model.quantities import Quantity, ReferenceQuantity

SOURCE = {"kind": "tail", "name": "app", "path": "app.jsonl"}


def a_config(**data: Any) -> Config:
    """The configuration of these keys and one source."""
    return parse({"sources": [SOURCE], **data}, folder=Path())


def test_one_source_is_enough() -> None:
    """Everything else has a default that works on a bare machine; a store without a kind is SQLite."""
    config = a_config()
    (judge,) = config.judges
    assert (judge.place.name, judge.place.probability, judge.kind) == ("embedded", 1.0, "lexical")
    assert (config.store.kind, config.settings.web.listen) == ("sqlite", "127.0.0.1:10477")
    assert config.settings.redaction.enabled is True
    assert dict(config.settings.estimates.windows) == {"15m": 900.0, "1h": 3600.0, "1d": 86400.0}
    assert a_config(store={"texts": "none"}).store == a_config(store={"kind": "sqlite", "texts": "none"}).store
    with pytest.raises(ConfigError, match=r"^store\.url: "):
        a_config(store={"url": "postgresql://h/d"})


def test_units_become_numbers_and_booleans_stay() -> None:
    """Durations are seconds, sizes bytes; windows may have names; a boolean beside numbers stays one."""
    settings = a_config(
        judging={"timeout": "1m"},
        estimates={"windows": ["2h", 90], "every": "500ms"},
        retention={"bytes": "1MiB"},
        thresholds={"faithfulness": 0.9},
    ).settings
    assert (settings.judging.timeout, settings.estimates.every, settings.retention.bytes) == (60.0, 0.5, 1 << 20)
    assert dict(settings.estimates.windows) == {"2h": 7200.0, "90": 90.0}
    assert a_config(estimates={"windows": {"day": 86400}}).settings.estimates.windows == {"day": 86400.0}
    assert a_config(sampling={"routes": {"other": 0.5}}).settings.sampling.routes == {"other": 0.5}
    assert settings.thresholds == {Quantity.FAITHFULNESS: 0.9}
    claude = {"name": "j", "kind": "claude", "model": "m", "api_key": "k", "second_reading": False, "concurrency": 1}
    config = a_config(gate={"strict": True, "minimum_samples": 1}, judges=[claude])
    assert (config.settings.gate.strict, config.settings.gate.minimum_samples) == (True, 1)
    switches = {"second_reading": False, "concurrency": 1}
    assert config.judges[0].options.model_dump(include=set(switches)) == switches


def test_thresholds() -> None:
    """The seed's hold where none is named; live traffic has no reference; only what is stated holds back learning."""
    seeds = {"faithfulness": 0.85, "answer_relevancy": 0.75, "context_precision": 0.70, "top_ranked_ignored": 0.30}
    by_route = {"routes": {"faq": {"faithfulness": 0.6, "answer_relevancy": None}}}
    assert a_config().settings.live_thresholds == seeds
    assert a_config(thresholds={}).settings.live_thresholds == {}
    settings = a_config(routes=["faq"], thresholds=by_route).settings
    assert settings.live_thresholds == seeds
    assert settings.gate_thresholds is None
    assert a_config(thresholds={}).settings.gate_thresholds == {}
    assert settings.route_thresholds == {"faq": {Quantity.FAITHFULNESS: 0.6, Quantity.ANSWER_RELEVANCY: None}}
    both = a_config(routes=["faq"], thresholds={"faithfulness": 0.9, **by_route}).settings
    assert both.live_thresholds == both.gate_thresholds == {Quantity.FAITHFULNESS: 0.9}
    settings = a_config(thresholds={"faithfulness": 0.9, "context_recall": 0.8, "correctness": 0.5}).settings
    assert settings.thresholds[ReferenceQuantity.CONTEXT_RECALL] == 0.8
    assert settings.live_thresholds == {Quantity.FAITHFULNESS: 0.9}
    assert a_config().settings.stated_thresholds("other") == {}
    thresholds = {"faithfulness": 0.9, "top_ranked_ignored": 0.3, "routes": {"faq": {"faithfulness": 0.6}, "old": {}}}
    settings = a_config(routes=["faq", "old", "new"], thresholds=thresholds).settings
    assert settings.stated_thresholds("faq") == {Quantity.FAITHFULNESS: 0.6}
    assert settings.stated_thresholds("old") == {Quantity.FAITHFULNESS: 0.9}
    thresholds = {"faithfulness": 0.9, "routes": {"new": {"faithfulness": None}}}
    assert a_config(routes=["new"], thresholds=thresholds).settings.stated_thresholds("new") == {}


def test_every_mistake_of_a_place_is_told_at_once() -> None:
    """One run shows all that is wrong in the settings, a line each."""
    with pytest.raises(ConfigError) as caught:
        a_config(drain="soon", log={"level": "loud"}, zebra=1)
    assert [line.split(":")[0] for line in str(caught.value).splitlines()] == ["drain", "log.level", "zebra"]


def test_the_file_gives_the_folder_of_secrets(tmp_path: Path) -> None:
    """`file:` is relative to the configuration, not to where we were started."""
    (tmp_path / "where").write_text("/from/the/file\n")
    (tmp_path / "config.yaml").write_text("sources: [{kind: tail, name: app, path: x}]\nstate: file:where\n")
    assert load(tmp_path / "config.yaml").settings.state == Path("/from/the/file")


def test_what_a_reload_cannot_change() -> None:
    """State directory, store and address are held by the process."""
    fixed = a_config().fixed
    changes = ({"drain": "1s"}, {"routes": ["a"]}, {"state": "/x"}, {"web": {"listen": "[::1]:9"}})
    assert [a_config(**change).fixed == fixed for change in changes] == [True, True, False, False]


def test_every_server_has_an_address_of_its_own() -> None:
    """A source over gRPC has neither that of the pages nor that of another source; a reload cannot change it."""

    def config_of(*addresses: str) -> Config:
        listen = [{"grpc": {"listen": address}} for address in addresses]
        sources = [{"kind": "otlp", "name": f"traces{number}", **one} for number, one in enumerate(listen)]
        return parse({"sources": sources, "web": {"listen": "127.0.0.1:1"}}, folder=Path())

    free = config_of("127.0.0.1:2", "127.0.0.1:0", "127.0.0.1:0")
    assert [listener.source for listener in free.grpc_listeners] == ["traces0", "traces1", "traces2"]
    assert free.fixed != config_of("127.0.0.1:3", "127.0.0.1:0", "127.0.0.1:0").fixed
    for addresses, taken in ((("127.0.0.1:1",), "web.listen"), (("h:2", "h:2"), "sources.traces0.grpc.listen")):
        with pytest.raises(ConfigError, match=rf"^sources\.traces\d\.grpc\.listen: .* is that of {taken}"):
            config_of(*addresses)
    with pytest.raises(ConfigError, match="port 99999 does not exist"):
        config_of("127.0.0.1:99999")


def test_files_of_privacy_are_relative_to_the_configuration() -> None:
    """No reload changes them; what needs texts that are not kept says so."""
    store = {"kind": "sqlite", "texts": "failing", "encryption": {"key_file": "key"}}
    bare = {"sources": [SOURCE], "store": store}
    config = parse(bare | {"audit": {"file": "audit.jsonl"}}, folder=Path("/etc/ragwatch"))
    assert config.store.options.model_dump()["encryption"]["key_file"] == Path("/etc/ragwatch/key")
    assert config.settings.audit.file == Path("/etc/ragwatch/audit.jsonl")
    assert config.texts == "failing"
    assert config.fixed != parse(bare, folder=Path("/etc/ragwatch")).fixed
    assert a_config().texts == "all"
    a_config().require_texts("labelling")
    with pytest.raises(ConfigError, match=r"^store\.texts: is none, and labelling needs .*set it to all"):
        a_config(store={"kind": "sqlite", "texts": "none"}).require_texts("labelling")
