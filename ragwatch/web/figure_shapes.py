"""JSON Schemas of drift, one route of the service, trends, changes, canaries and causes."""

from __future__ import annotations

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
    many,
    maybe,
    named,
    one_of,
    record,
)

_POINT = {"value": NUMBER, "low": maybe(NUMBER), "high": maybe(NUMBER), "n": COUNT}
_MEAN = {**_POINT, "value": maybe(NUMBER)}
_EVENT = {"at": TIME, "kind": TEXT, "detail": TEXT}
_STATE = one_of(STATES)


def figure_shapes() -> dict[str, Schema]:
    """Returns the schemas by name."""
    return {**_drift_shapes(), **_route_shapes(), **_canary_shapes(), **_cause_shapes()}


def _drift_shapes() -> dict[str, Schema]:
    alarm = {"alarm": FLAG, "since": maybe(TIME), "since_seconds": maybe(NUMBER), "acknowledge": maybe(TEXT)}
    evidence = {"evidence": maybe(NUMBER), "threshold": maybe(NUMBER)}
    band = dict.fromkeys(("value", "low", "high", "scores", "since"), NUMBER)
    answer = {
        "quantity": TEXT,
        "route": TEXT,
        "lower_is_better": FLAG,
        "share": maybe(SHARE),
        "words": maybe(TEXT),
        "baseline": maybe(NUMBER),
        "learning": FLAG,
        "paused": maybe(TEXT),
        "changed_stage": maybe(TEXT),
        "band": maybe(record(band)),
        "judge_moved": FLAG,
        "past": many(record({"at": TIME, "evidence": maybe(NUMBER), "back": maybe(TIME)})),
        "back": maybe(TIME),
        "samples": TEXT,
    }
    segment = dict.fromkeys(("quantity", "route", "segment", "value", "acknowledge"), TEXT)
    segment |= {"began": maybe(TIME), "before": maybe(SHARE), "mean": maybe(SHARE), "answers": maybe(NUMBER)}
    cut: Schema = {"description": "above which value requests are counted: a number, or a text such as yes"}
    traffic = {"signal": TEXT, "route": TEXT, "cut": cut, "direction": maybe(TEXT)}
    versions = {name: maybe(TEXT) for name in ("version", "since_version")}
    judge = {"judge": TEXT, "flips": maybe(NUMBER), "read_at": maybe(TIME), "read": maybe(NUMBER), **versions}
    return {
        "Drift": record(
            {
                "at": maybe(TIME),
                "now": TIME,
                "error": maybe(TEXT),
                "state": _STATE,
                "headline": TEXT,
                "alarms": COUNT,
                "watched": COUNT,
                "answers": many(record({**answer, **evidence, **alarm})),
                "segments": many(record(segment)),
                "segments_watched": COUNT,
                "traffic": many(record({**traffic, **evidence, **alarm})),
                "traffic_paused": many(record({"signal": TEXT, "route": TEXT, "paused": TEXT})),
                "judges": many(record({**judge, "alarm": FLAG, "acknowledge": maybe(TEXT)})),
                "events": many(record(_EVENT)),
                "event_routes": many(TEXT),
            }
        )
    }


def _route_shapes() -> dict[str, Schema]:
    row = {name: maybe(NUMBER) for name in ("low", "high", "n", "baseline")}
    row |= {"name": TEXT, "source": TEXT, "value": NUMBER, "moved": maybe(one_of(("worse", "not worse")))}
    segment = {"quantity": TEXT, "value": TEXT, "mean": NUMBER, "low": NUMBER, "high": NUMBER, "n": COUNT}
    segment |= {"threshold": maybe(NUMBER), "bad": FLAG}
    level = {"level": TEXT, "rows": many(record({**row, "samples": maybe(TEXT)})), "why": maybe(TEXT)}
    return {
        "Route": record(
            {
                "version": TEXT,
                "known": FLAG,
                "route": TEXT,
                "at": maybe(TIME),
                "now": TIME,
                "window": TEXT,
                "windows": many(TEXT),
                "state": _STATE,
                "headline": TEXT,
                "levels": many(record(level)),
                "segments": many(record({"segment": TEXT, "rows": many(record(segment))})),
                "stages": many(named("StageShare")),
            }
        ),
        "Trends": _trends(),
        "Changes": _changes(),
    }


def _trends() -> Schema:
    chart = {"kind": one_of(("score", "canary", "drift", "traffic_drift")), "name": TEXT, "of": TEXT, "n": COUNT}
    score = {"lower_is_better": FLAG, "mean": record(_MEAN), "versions": many(TEXT)}
    evidence = {"present": maybe(NUMBER), "highest": NUMBER, "level": TEXT, "words": maybe(TEXT), "highest_words": TEXT}
    point = record({"start": COUNT}, {"version": TEXT, **_MEAN, "peak": NUMBER})
    return record(
        {
            "version": TEXT,
            "now": TIME,
            "error": maybe(TEXT),
            "route": maybe(TEXT),
            "suite": maybe(TEXT),
            "judge": maybe(TEXT),
            "range": TEXT,
            "since": TIME,
            "until": TIME,
            "step": COUNT,
            **{name: many(TEXT) for name in ("routes", "suites", "judges", "ranges", "silent")},
            "charts": many(record({**chart, "threshold": maybe(NUMBER), "points": many(point)}, {**score, **evidence})),
            "events": many(record(_EVENT)),
        }
    )


def _changes() -> Schema:
    row = {"name": TEXT, "lower_is_better": FLAG, "other_version": maybe(TEXT), "samples": maybe(TEXT)}
    difference = {"value": NUMBER, "low": maybe(NUMBER), "high": maybe(NUMBER)}
    sides = {name: maybe(record(_POINT)) for name in ("before", "after")}
    conclusions = {"conclusion": maybe(TEXT), "why": maybe(TEXT)}
    return record(
        {
            "now": TIME,
            "error": maybe(TEXT),
            "at": TIME,
            "route": TEXT,
            "suite": TEXT,
            "judge": TEXT,
            "span": TEXT,
            "questions": TEXT,
            "spans": many(TEXT),
            "sides": record(dict.fromkeys(("span", "before", "end", "start", "after"), NUMBER)),
            "partial": FLAG,
            "state": _STATE,
            "headline": TEXT,
            "events": many(record(_EVENT)),
            "others": many(record(_EVENT)),
            "rows": many(record({**row, **sides, "difference": maybe(record(difference)), **conclusions})),
            "same_questions": maybe({**ANYTHING, "description": "as `ragwatch compare --json` prints it"}),
        }
    )


def _canary_shapes() -> dict[str, Schema]:
    hit = record({"rank": COUNT, "context": TEXT, "score": maybe(NUMBER)})
    ranks = {"before": maybe(COUNT), "after": maybe(COUNT)}
    move = record({"context": TEXT, **ranks, "instead": maybe(TEXT)})
    change = {"vanished": many(move), "moved": many(move), "newcomers": many(hit), "score_shift": maybe(NUMBER)}
    degraded = {"canary": TEXT, "query": TEXT, "category": TEXT, "reason": maybe(TEXT), "wanted_score": maybe(NUMBER)}
    degraded |= {"missing": many(TEXT), "came": many(hit), "change": maybe(record(change))}
    past = {"at": TIME, "state": _STATE, "canaries": COUNT, "degraded": COUNT, "failed": COUNT}
    quality = {"recall": maybe(NUMBER), "mrr": maybe(NUMBER)}
    at_k = {"k": COUNT, **{name: maybe(NUMBER) for name in ("recall", "precision", "f1", "ndcg")}}
    suite = {
        "suite": TEXT,
        "state": _STATE,
        "at": maybe(TIME),
        "canaries": COUNT,
        "degraded": many(record(degraded)),
        "failed": many(record({"canary": TEXT, "reason": TEXT, "detail": TEXT})),
        "history": many(record({**past, **quality})),
    }
    of_a_run = {"age_seconds": NUMBER, "cutoff": COUNT, "coverage": maybe(NUMBER), "health": maybe(NUMBER)}
    correctness = record({"gold": maybe(NUMBER), "retrieved": maybe(NUMBER)})
    answers = {"judged": COUNT, "correctness": correctness, "faults": ANYTHING, "verdict": many(TEXT)}
    wrong = {"canary": TEXT, "query": TEXT, "fault": TEXT, "reference": maybe(TEXT)}
    wrong |= {"gold": maybe(TEXT), "retrieved": maybe(TEXT)}
    of_a_run |= {"answers": maybe(record({**answers, "not_judged": ANYTHING})), "wrong": many(record(wrong))}
    of_a_run["scores_fell"] = FLAG
    of_a_run |= {"by_k": many(record(at_k)), "categories": many(ANYTHING), "listed": COUNT}
    return {
        "Canaries": record(
            {
                "version": TEXT,
                "now": TIME,
                "state": _STATE,
                "headline": TEXT,
                "degraded": COUNT,
                "asked": COUNT,
                "suites": many(record(suite, {**of_a_run, **quality})),
            }
        )
    }


def _cause_shapes() -> dict[str, Schema]:
    slice_ = {"attribute": TEXT, "value": TEXT}
    values = {"values": many(TEXT)}
    share = dict.fromkeys(("failing", "of_failing", "of_passing"), SHARE)
    share |= dict.fromkeys(("others", "low", "high", "explains", "e_value"), NUMBER)
    cause = {**slice_, **share, "since": TIME, "until": TIME, "n": COUNT, "examples": many(KEY), "text": TEXT}
    search = {
        "looked_at": COUNT,
        "failing": COUNT,
        "share": maybe(SHARE),
        "begin": maybe(TIME),
        "end": maybe(TIME),
        "route": maybe(TEXT),
        "judge": maybe(TEXT),
        "quantity": maybe(TEXT),
        "limit": maybe(NUMBER),
        "since": TIME,
        "until": maybe(TIME),
        "unknown": COUNT,
        "without_traits": COUNT,
        "complete": FLAG,
        "texts": TEXT,
        "false_discovery_rate": SHARE,
        "samples": TEXT,
    }
    return {
        "Causes": record(
            {
                "version": TEXT,
                "error": {"type": "null"},
                "causes": many(record({**cause, "folded": many(record(slice_, values))}, values)),
                "answers": COUNT,
                "at": TIME,
            },
            search,
        )
    }
