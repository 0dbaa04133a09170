"""The OpenAPI document: it names every route under `/api/v1`, and real responses have the shapes that it gives."""

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator
from starlette.applications import Starlette
from starlette.routing import Route
from support.asked import Words, application, asking, judged
from support.canaries import a_canary, a_failure, a_reply, a_report
from support.kit import AT, JUDGE, a_claim, a_draw, a_verdict, an_admission, an_evidence, an_unjudged
from support.snapshots import small

from ragwatch.model.quantities import Quantity
from ragwatch.ports import RecordedEvent, Store, StoredRun
from ragwatch.statistics.canary.answer import JudgedAnswer
from ragwatch.statistics.canary.history import body_of, tallies_of
from ragwatch.statistics.canary.report import SuiteReport
from ragwatch.statistics.labels.label import Label
from ragwatch.statistics.snapshot import Gauge
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.web import PageScope, RequestPolicy
from ragwatch.web.entity_tags import entity_tag
from ragwatch.web.json_values import ParameterError, Schema
from ragwatch.web.openapi import PATH, document
from ragwatch.web.pages.trends_page import TrendRequest
from ragwatch.web.samples import JSON_PARAMETERS, json_query_of

SCOPE = replace(
    PageScope(("app",), ("search",), (JUDGE,), ("1h",), {"faithfulness": 0.7}, ("docs",), criteria=("is_polite",)),
    segments={"release": ("v1",)},
)
BAD = a_draw("bad", at=AT - 60, metadata={"release": "v2"})
LABEL = Label(BAD.key, "ann", AT, {Quantity.FAITHFULNESS: 0.0}, (), 0.5, "wrong", owner="ann", without={"bob": 0.5})


def an_app(store: Store | None, policy: RequestPolicy | None = None) -> Starlette:
    """The application over a Snapshot with alarms."""
    words = Words()
    words.kept = [replace(LABEL, note="second").after(LABEL).to_record()]
    gauges = {
        (Gauge.DRIFT_EVIDENCE, ("faithfulness", "search")): 130.0,
        (Gauge.DRIFT_THRESHOLD, ("faithfulness", "search")): 120.0,
        (Gauge.DRIFT_ALARM, ("faithfulness", "search")): 1.0,
        (Gauge.TRAFFIC_DRIFT_EVIDENCE, ("question_words", "search")): 3.0,
        (Gauge.TRAFFIC_DRIFT_PAUSED, ("language", "search", "few")): 1.0,
        (Gauge.JUDGE_DRIFT_FLIPS, (JUDGE,)): 2.0,
        (Gauge.JUDGE_DRIFT_ALARM, (JUDGE,)): 1.0,
        (Gauge.CANARY_RECALL, ("docs", "5")): 0.5,
    }
    parts = {"store": store, "scope": lambda: SCOPE, "labels": lambda: words, "policy": policy or RequestPolicy()}
    return application(replace(small(), gauges=gauges), **parts)


async def get(app: Starlette, path: str, **headers: str) -> httpx.Response:
    """One response."""
    async with asking(app) as client:
        return await client.get(path, headers=headers)


def fill(store: Store) -> None:
    """Verdicts of every kind, an event, an alarm, and two canary runs."""
    good, missed = a_draw("good"), a_draw("missed", at=AT - 30)
    store.admit(an_admission(good, BAD, missed))
    claims = an_evidence(a_claim((0, 0), "contradicted"))
    store.settle([a_verdict(good), a_verdict(BAD, claims), an_unjudged(missed)])
    store.record(RecordedEvent(AT - 100, "release", "v2"))
    alarm = {"evidence": 121.5, "threshold": 120.0, "judge": JUDGE}
    store.record_run(StoredRun("drift", "faithfulness/search", AT - 50, failing=True, body=alarm), Counter())
    for reports in (
        (a_report(a_canary("a"), a_reply("a")),),
        (a_report(a_canary("a"), a_reply("x", "y")), a_report(a_canary("b", name="down"), a_failure())),
    ):
        answers = (JudgedAnswer("a", "gold", "No.", {"correctness": 0.0}),)
        suite = SuiteReport("docs", (5,), reports, answers)
        store.record_run(StoredRun("canary", "docs", AT - 10, failing=False, body=body_of(suite)), tallies_of(suite))


def closed(schema: Any) -> Any:
    """A schema that allows no property that it does not list."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    whole = {name: closed(value) for name, value in schema.items()}
    return whole | {"additionalProperties": False} if whole.get("type") == "object" and "properties" in whole else whole


def faults(body: object, schema: Schema) -> list[str]:
    """What is wrong with a response, by the document."""
    components = closed(document(SCOPE.criteria)["components"])
    validator = Draft202012Validator({**schema, "components": components})
    return [f"{one.json_path}: {one.message[:300]}" for one in validator.iter_errors(body)]


def schema_of(path: str, status: int) -> Schema:
    """The schema of a response."""
    pattern = re.sub("/samples/[^/]+", "/samples/{key}", path.partition("?")[0])
    responses = document()["paths"][re.sub("/segments/.+", "/segments/{segment}", pattern)]["get"]["responses"]
    return dict(responses[str(status)]["content"]["application/json"]["schema"])


async def test_the_document_names_every_route_and_no_other() -> None:
    """What is served under `/api/` is documented, what is documented is served, and the document itself is served."""
    app = an_app(None)
    served = await get(app, PATH)
    assert served.json() == document(SCOPE.criteria)
    routes = {route.path.replace(":path", "") for route in app.routes if isinstance(route, Route)}
    assert set(served.json()["paths"]) == {path for path in routes if path.startswith("/api/")}
    names = re.findall(r"#/components/schemas/(\w+)", served.text)
    assert set(names) == set(served.json()["components"]["schemas"])
    for schema in served.json()["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


ANSWERED = {
    200: (
        *("snapshot?window=1h", "canaries", "samples", "samples?texts=true&limit=2", f"samples/{BAD.key}"),
        *(f"samples/{BAD.key}/prompt?judge={JUDGE}", "labels", "drift", "routes?route=search"),
        *("segments/step?route=search", "segments/release?sort=level", "trends?route=search"),
        *("trends?suite=docs&range=1h", "changes?at=1h&route=search", "changes?at=1h&route=search&questions=same"),
        *("changes?at=5m&suite=docs&span=1h", "causes?window=1h&route=search"),
    ),
    400: (
        *("samples?limit=0", "labels?after=x", "segments/release?sort=colour", "trends?range=never", "changes"),
        "causes?window=soon",
    ),
    404: (
        *("samples/none", f"samples/{BAD.key}/prompt", "routes?route=none", "segments/none", "trends?route=none"),
        "changes?at=1h&route=nowhere",
    ),
}


async def test_responses_have_the_documented_shape(tmp_path: Path) -> None:
    """Every property that is there is documented, and every documented one that is not optional is there.

    Of a store that is filled, of one that holds nothing, and of one that cannot be read.
    """
    store, closed = SqliteStore(tmp_path / "filled"), SqliteStore(tmp_path / "closed")
    fill(store)
    closed.close()
    shared = ("samples", "drift", "trends", "changes?at=1h", "causes", "segments/step")
    of_one = (f"samples/{BAD.key}", f"samples/{BAD.key}/prompt?judge={JUDGE}")
    cases = [(store, status, path) for status, paths in ANSWERED.items() for path in paths]
    cases += [(None, 200, path) for path in ("snapshot", "canaries", *shared)]
    cases += [(closed, 503, path) for path in (*shared, *of_one)]
    for found, status, path in cases:
        response = await get(an_app(found), f"/api/v1/{path}")
        assert (path, response.status_code) == (path, status)
        assert (path, faults(response.json(), schema_of(f"/api/v1/{path}", status))) == (path, [])
    store.close()


def parameters_of(path: str) -> dict[str, Any]:
    """Documented parameters of a path."""
    return {one["name"]: one["schema"] for one in document(SCOPE.criteria)["paths"][path]["get"]["parameters"]}


def test_parameters_are_those_that_are_checked() -> None:
    """Names that are not documented are refused, documented limits are those in force, criteria are quantities."""
    search = parameters_of("/api/v1/samples")
    assert tuple(search) == JSON_PARAMETERS
    assert "is_polite" in search["quantity"]["enum"]
    for good, bad in ((search["limit"]["maximum"], search["limit"]["maximum"] + 1), (search["limit"]["minimum"], 0)):
        assert json_query_of([("limit", str(good))], now=AT)[0].limit == good
        with pytest.raises(ParameterError, match="limit"):
            json_query_of([("limit", str(bad))], now=AT)
    assert all(json_query_of([("stage", value)], now=AT) for value in search["stage"]["enum"])
    for name in parameters_of("/api/v1/trends")["range"]["enum"][1:]:
        assert TrendRequest.of({"range": name}).range == name


async def test_what_is_unchanged_is_not_sent_again(store: SqliteStore) -> None:
    """A tag that is given back is answered with 304 without a body, until the content changes."""
    fill(store)
    app = an_app(store)
    for path in ("/api/v1/snapshot", "/api/v1/samples", "/api/v1/drift", "/samples", PATH):
        first = await get(app, path)
        tag = first.headers["etag"]
        again = await get(app, path, **{"If-None-Match": f'"other", {tag}'})
        assert (path, again.status_code, again.content, again.headers["etag"]) == (path, 304, b"", tag)
        assert again.headers["cache-control"] == "no-store"
        assert "content-length" not in again.headers
        other = await get(app, path, **{"If-None-Match": '"other"'})
        assert (other.status_code, other.content) == (200, first.content)
    tag = (await get(app, "/api/v1/samples")).headers["etag"]
    late = a_draw("late")
    judged(store, late)
    assert (await get(app, "/api/v1/samples", **{"If-None-Match": tag})).status_code == 200


async def test_streams_and_errors_have_no_tag(store: SqliteStore) -> None:
    """They are sent as they are made, whatever tag the client has."""
    fill(store)
    for path, status in (("/api/v1/samples?texts=true", 200), ("/api/v1/samples?limit=0", 400), ("/nowhere", 404)):
        response = await get(an_app(store), path, **{"If-None-Match": "*"})
        assert (response.status_code, "etag" in response.headers) == (status, False)
        assert response.content


def test_only_the_time_of_the_request_is_left_out_of_a_tag() -> None:
    """Text that looks like a time, and a score of that name in a list, count."""
    assert entity_tag(b'{"now":1,"question":"\\"now\\":1"}') != entity_tag(b'{"now":1,"question":"\\"now\\":2"}')
    assert entity_tag(b'{"samples":[{"now":0.5}]}') != entity_tag(b'{"samples":[{"now":0.6}]}')
    assert entity_tag(b'{"version":"1","now":5.5e9,"n":1}') == entity_tag(b'{"version":"1","now":7,"n":1}')


def test_the_document_is_the_same_in_every_process() -> None:
    """Its values have an order of their own, not that of a set, so that two documents can be compared as texts."""
    code = f"import json; from {document.__module__} import document; print(json.dumps(document(('polite', 'brief'))))"
    texts = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, check=True, stdout=subprocess.PIPE
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(texts) == 1
