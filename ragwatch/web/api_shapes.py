"""JSON Schemas of the responses of `/api/v1`. Every property is present, unless it is optional."""

from __future__ import annotations

from ragwatch.core.evidence import ClaimVerdict
from ragwatch.model.stages import Stage
from ragwatch.web.figure_shapes import figure_shapes
from ragwatch.web.json_schema import (
    ANYTHING,
    COUNT,
    FLAG,
    KEY,
    NUMBER,
    SHARE,
    STATES,
    TEXT,
    TIME,
    Schema,
    by_name,
    many,
    maybe,
    named,
    one_of,
    record,
)

_INTERVAL = {"value": NUMBER, "low": NUMBER, "high": NUMBER, "n": COUNT}
_BOUNDS = {"bound_low": NUMBER, "bound_high": NUMBER, "n_eff": NUMBER}
_STATE = one_of(STATES)
_WITHOUT = {"annotator": TEXT, "labels": COUNT, **{name: maybe(NUMBER) for name in ("value", "low", "high")}}


def shapes() -> dict[str, Schema]:
    """Returns the schemas of the responses, by name."""
    return {
        "Error": record({"error": TEXT}),
        **_snapshot_shapes(),
        **_sample_shapes(),
        **figure_shapes(),
    }


def _snapshot_shapes() -> dict[str, Schema]:
    corrected = record(
        {**_INTERVAL, "labels": COUNT, "labels_given": COUNT, "calibrated": FLAG},
        {
            "annotators": COUNT,
            "stands_on": maybe(TEXT),
            "greatest_change": maybe(NUMBER),
            "without": many(record(_WITHOUT)),
        },
    )
    figure = record(
        {
            "quantity": TEXT,
            "lower_is_better": FLAG,
            "threshold": maybe(NUMBER),
            "last_sample_at": maybe(TIME),
            "age_seconds": maybe(NUMBER),
            "state": _STATE,
            "why": maybe(TEXT),
        },
        {**_INTERVAL, **_BOUNDS, "interval": TEXT, "corrected": maybe(corrected)},
    )
    return {
        "Figure": figure,
        "StageShare": record({"stage": one_of(Stage), "count": NUMBER, "share": SHARE, "start": NUMBER}),
        "Snapshot": record(
            {
                "version": TEXT,
                "at": maybe(TIME),
                "now": TIME,
                "window": TEXT,
                "windows": many(TEXT),
                "state": _STATE,
                "headline": TEXT,
                "drift": many(record({"kind": one_of(("answers", "traffic", "judge")), "name": TEXT, "route": TEXT})),
                "bad": COUNT,
                "unsure": COUNT,
                "judged_figures": COUNT,
                "problems": many(TEXT),
                "routes": many(_route()),
                "sources": many(_source()),
                "judges": many(_judge()),
                "failing": many(_failing()),
                "unpaged": many(TEXT),
            }
        ),
    }


def _route() -> Schema:
    judged = {"judge": TEXT, "why": maybe(TEXT), "coverage": maybe(SHARE), "judged": NUMBER}
    return record(
        {
            "route": TEXT,
            "state": _STATE,
            "threshold_state": _STATE,
            "drift": many(TEXT),
            "drawn": NUMBER,
            "probability": maybe(SHARE),
            "stages": many(named("StageShare")),
            "judges": many(record({**judged, "figures": many(named("Figure"))})),
            "user_score": maybe(record({**_INTERVAL, **_BOUNDS, "response": SHARE, "last_sample_at": maybe(TIME)})),
        }
    )


def _source() -> Schema:
    lag = {name: maybe(NUMBER) for name in ("lag_bytes", "lag_records", "lag_seconds", "unreadable_files")}
    counts = {name: by_name(NUMBER) for name in ("rejected", "left_out", "resets")}
    texts = {"unreadable": by_name(TEXT), "skipped": TEXT}
    return record({"source": TEXT, "seen": NUMBER, "repaired": NUMBER, **counts, **lag, **texts})


def _judge() -> Schema:
    counts = {"judged": NUMBER, "unjudged": by_name(NUMBER), "pending": NUMBER}
    kind = {"kind": maybe(TEXT), "version": maybe(TEXT)}
    return record({"judge": TEXT, **kind, **counts, "user_correlations": by_name(record(_INTERVAL))})


def _failing() -> Schema:
    place = {"key": KEY, "at": TIME, "route": TEXT, "judge": TEXT}
    return record({**place, "stage": maybe(TEXT), "question": maybe(TEXT)}, {"error": TEXT})


def _sample_shapes() -> dict[str, Schema]:
    label = {
        "key": TEXT,
        "annotator": TEXT,
        "at": TIME,
        "scores": by_name(SHARE),
        "claims": many(maybe(one_of(ClaimVerdict))),
        "probability": maybe(SHARE),
        "note": TEXT,
    }
    history = {"criteria": many(TEXT), "owner": TEXT, "without": by_name(NUMBER), "revoked": TIME}
    entry = {"verdict": named("Verdict"), "sample": maybe(named("Sample"))}
    return {
        "Sample": {**ANYTHING, "description": "a redacted record; lists hold excerpts of id, question and answer"},
        "Verdict": _verdict(),
        "Samples": record(
            {"samples": many(record(entry, {"error": TEXT, "truncated": FLAG}))},
            {"next": TEXT, "error": TEXT, "examined_since": TIME},
        ),
        "SampleInFull": record(
            {
                "key": KEY,
                "verdicts": many(named("Verdict")),
                "sample": maybe(named("Sample")),
                "feedback": maybe(record({"user_score": SHARE, "at": TIME})),
            },
            {"truncated": many(TEXT), "errors": many(TEXT)},
        ),
        "Prompt": record(
            {
                "key": KEY,
                "judge": TEXT,
                "version": TEXT,
                "in_force": maybe(TEXT),
                "prompts": many(record({"system": TEXT, "user": TEXT})),
                "verdict": maybe(ANYTHING),
                "reply": maybe(TEXT),
                "notes": many(TEXT),
            }
        ),
        "Labels": record(
            {"labels": many(record(label, {**history, "earlier": many(ANYTHING)})), "picked_until": maybe(TIME)},
            {"next": TEXT},
        ),
    }


def _verdict() -> Schema:
    claim = record(
        {
            "text": TEXT,
            "start": maybe(COUNT),
            "end": maybe(COUNT),
            "verdict": one_of(ClaimVerdict),
            "support": maybe(SHARE),
            "contexts": many(COUNT),
        },
        {"joint": FLAG, "informed": many(COUNT), "evidence": maybe(TEXT), "said_by_user": FLAG, "facts": COUNT},
    )
    context = {"id": maybe(TEXT), "relevant": maybe(FLAG), "used": maybe(FLAG), "relevance": maybe(NUMBER)}
    citation = {"context": COUNT, "start": COUNT, "end": COUNT, "supports": FLAG}
    criterion = {"name": TEXT, "answer": maybe(TEXT), "quote": maybe(TEXT)}
    place = {"key": KEY, "judge_name": TEXT, "route": TEXT, "at": TIME, "probability": SHARE}
    figures = {
        "outcome": one_of(("judged", "unjudged")),
        "reason": maybe(TEXT),
        "stage": maybe(TEXT),
        "fault": maybe(TEXT),
        "scores": maybe(by_name(maybe(NUMBER))),
    }
    return record(
        {**place, **figures},
        {
            "id": TEXT,
            "trace_id": maybe(TEXT),
            "expected": by_name(NUMBER),
            "claims": many(claim),
            "contexts": many(record(context)),
            "missing": many(TEXT),
            "address": maybe(TEXT),
            "reference": maybe(ANYTHING),
            "unread": maybe(TEXT),
            "counted_as": TEXT,
            "judge": ANYTHING,
            "citations": many(record(citation)),
            "instructions": many(TEXT),
            "criteria": many(record(criterion)),
        },
    )
