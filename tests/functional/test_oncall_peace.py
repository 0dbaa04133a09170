"""What calls nobody (rollouts, restarts, gaps in scraping, rare schedules) and what still does, played to promtool."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from functional.test_oncall_rules import run
from support.oncall_cases import Case

MINUTE = 60
HOUR = 60  # steps of a minute


@dataclass(frozen=True)
class Scene:
    """Series, a value a minute, and the minutes at which an alert fires or must not."""

    alert: str
    series: Mapping[str, str]
    quiet: tuple[int, ...] = ()
    firing: tuple[int, ...] = ()


def flat(value: float, steps: int) -> str:
    """So many equal values."""
    return f"{value}x{steps - 1}"


def gone(steps: int) -> str:
    """So many scrapes without a value; Prometheus marks the first of them, so that nothing is carried forward."""
    return f"stale _x{steps - 1}"


def climb(first: float, by: float, steps: int) -> str:
    """So many values, each greater than the one before."""
    return f"{first}+{by}x{steps - 1}"


def _seen(values: str, canaries: str | None = None, instance: str = "a") -> dict[str, str]:
    """Records of a source; as many of canaries as told, else none, scraped at the same times."""
    place = f'{{job="ragwatch",instance="{instance}",source="app"}}'
    none = re.sub(r"\d+(\+\d+)?x", "0x", values)
    return {
        f"ragwatch_requests_seen_total{place}": values,
        f"ragwatch_requests_of_canaries_total{place}": none if canaries is None else canaries,
    }


def _pod(number: int) -> dict[str, str]:
    """A pod that is replaced in its turn, one every two minutes: the new one cannot be scraped for two minutes."""
    old, new = f'up{{job="ragwatch",instance="old{number}"}}', f'up{{job="ragwatch",instance="new{number}"}}'
    at = 5 + 2 * number
    return {old: f"{flat(1, at)} {gone(60)}", new: f"{gone(at)} {flat(0, 2)} {flat(1, 60)}"}


def _suite(name: str, failures: str, last_run: str, last_success: str | None = None) -> dict[str, str]:
    inner = f'job="ragwatch",instance="a",suite="{name}"'
    found = {
        f'ragwatch_canary_failures_total{{{inner},reason="refused"}}': failures,
        f"ragwatch_canary_last_run_timestamp_seconds{{{inner}}}": last_run,
    }
    if last_success is not None:
        found[f"ragwatch_canary_last_success_timestamp_seconds{{{inner}}}"] = last_success
    return found


def _reading(route: str, *, judged: str, scored: str = flat(0, 3 * HOUR)) -> dict[str, str]:
    """Draws of a route, what a judge has read of them, and how much of that has a score for answer relevancy.

    The newest score of another quantity, which was watched earlier, is of the beginning.
    """
    place = f'job="ragwatch",instance="a",route="{route}"'
    return {
        f'ragwatch_faithfulness_last_sample_timestamp_seconds{{{place},judge="claude"}}': flat(0, 3 * HOUR),
        f'ragwatch_answer_relevancy_weight_total{{{place},judge="claude"}}': scored,
        f"ragwatch_samples_drawn_total{{{place}}}": climb(0, 1, 3 * HOUR),
        f'ragwatch_samples_unjudged_total{{{place},judge="claude",reason="timeout"}}': flat(0, 3 * HOUR),
        f'ragwatch_samples_judged_total{{{place},judge="claude"}}': judged,
    }


def _never_scored(judged: str) -> dict[str, str]:
    """A judge that reads a route in a language that it does not know: no series of a quantity is there."""
    return {'ragwatch_samples_judged_total{job="ragwatch",instance="a",route="search",judge="embedded"}': judged}


def _answers(values: str, route: str = "search") -> dict[str, str]:
    return {f'ragwatch_traffic_contexts_count{{job="ragwatch",instance="a",route="{route}"}}': values}


def _silent(values: str, route: str = "search") -> dict[str, str]:
    """What the daemon says of a route's silence."""
    return {f'ragwatch_silence_alarm{{job="ragwatch",instance="a",route="{route}"}}': values}


def _tested(version: str, probes: str, fooled: str, in_force: str) -> dict[str, str]:
    """A version of a judge that is tested with known-bad answers."""
    place = f'job="ragwatch",instance="a",judge="claude",version="{version}"'
    return {
        f"ragwatch_judge_probes_total{{{place}}}": probes,
        f"ragwatch_judge_probes_fooled_total{{{place}}}": fooled,
        f'ragwatch_judge_info{{{place},kind="claude"}}': in_force,
    }


DAY = 24 * HOUR
INJECTIONS = 'ragwatch_judge_instructions_total{job="ragwatch",instance="a",judge="claude",place="context"}'
FOOLED_RATIO = 'ragwatch_judge_probe_fooled_ratio{job="ragwatch",instance="a",judge="claude"}'
SCENES = {
    "a rollout of many pods": Scene(
        "RagwatchDown",
        {name: values for number in range(10) for name, values in _pod(number).items()},
        quiet=tuple(range(5, 30)),
    ),
    "one instance that stays away": Scene(
        "RagwatchDown", {'up{job="ragwatch",instance="a"}': f"{flat(1, 5)} {flat(0, 30)}"}, quiet=(9,), firing=(12, 30)
    ),
    "an instance that is deleted while it is away": Scene(
        "RagwatchDown", {'up{job="ragwatch",instance="a"}': f"{flat(0, 4)} {gone(20)}"}, quiet=(4, 5, 6, 7, 8, 10, 12)
    ),
    "a quiet source, and a ragwatch that is back after an outage": Scene(
        "RagwatchSourceSilent",
        _seen(f"{climb(0, 10, 60)} {gone(90)} {flat(600, 90)}"),
        quiet=(157, 165, 180, 200),
        firing=(220,),
    ),
    "a source that is silent for days": Scene(
        "RagwatchSourceSilent",
        _seen(f"{climb(0, 10, 60)} {flat(600, 4500)} {climb(610, 10, 60)}"),
        quiet=(60, 100, 4570, 4600),
        firing=(130, 1530, 3000, 4550),
    ),
    "a silent source that is taken out of the configuration": Scene(
        "RagwatchSourceSilent",
        _seen(f"{climb(0, 10, 60)} {flat(600, 100)} {gone(120)}"),
        quiet=(100, 170, 200, 270),
        firing=(130, 155),
    ),
    "a rollout after which nothing is read any more": Scene(
        "RagwatchSourceSilent",
        _seen(f"{climb(0, 10, 60)} {gone(200)}") | _seen(f"{gone(60)} {flat(0, 200)}", instance="b"),
        quiet=(60, 100),
        firing=(130, 200),
    ),
    "a source that delivers nothing but our canaries from now on": Scene(
        "RagwatchSourceSilent",
        _seen(f"{climb(0, 10, 60)} {climb(592, 2, 120)} {climb(840, 10, 30)}", climb(0, 2, 210)),
        quiet=(60, 100, 200),
        firing=(130, 175),
    ),
    "a service that nobody but our canaries has asked yet": Scene(
        "RagwatchSourceSilent", _seen(climb(0, 2, 200), climb(0, 2, 200)), quiet=(70, 130, 190)
    ),
    "a busy route that answers nothing from now on, on its first day": Scene(
        "RagwatchRouteSilent",
        _answers(f"{climb(0, 3, 120)} {flat(357, 300)} {climb(360, 3, 30)}"),
        quiet=(30, 119, 130, 427, 445),
        firing=(141, 200, 300, 415),
    ),
    "a slow route whose answers pause": Scene(
        "RagwatchRouteSilent", _answers(f"{climb(0, 1, 90)} {flat(89, 45)} {climb(90, 1, 60)}"), quiet=(100, 120, 134)
    ),
    "a thin route that is silent, by its rhythm, with three missed scrapes and a restart": Scene(
        "RagwatchRouteSilent",
        _answers(f"{climb(0, 1, 60)} {flat(59, 120)} {climb(59, 1, 60)}")
        | _silent(f"{flat(0, 150)} {flat(1, 10)} _x2 {flat(1, 5)} {gone(3)} {flat(1, 9)} {flat(0, 60)}"),
        quiet=(100, 149, 230),
        firing=(156, 162, 170, 178),
    ),
    "a thin route that rests, and the daemon knows": Scene(
        "RagwatchRouteSilent",
        _answers(f"{climb(0, 1, 60)} {flat(59, 600)}") | _silent(flat(0, 660)),
        quiet=(90, 150, 300, 650),
    ),
    "a route that is added, and takes its answers from the rest": Scene(
        "RagwatchRouteSilent",
        _answers(f"{climb(0, 3, 120)} {flat(357, 200)}", "other")
        | _answers(f"{gone(120)} {climb(0, 3, 120)} {flat(357, 80)}"),
        quiet=tuple(range(120, 240, 10)),
        firing=(261, 300),  # the new route
    ),
    "a judge that reads a share, and has not read this route": Scene(
        "RagwatchNoFreshSamples", _reading("search", judged=flat(7, 3 * HOUR)), quiet=(90, 150)
    ),
    "a judge that reads the route, and scores nothing": Scene(
        "RagwatchNoFreshSamples", _reading("search", judged=climb(7, 1, 3 * HOUR)), quiet=(30,), firing=(90, 150)
    ),
    "a judge that has never scored an answer": Scene(
        "RagwatchNoFreshSamples", _never_scored(climb(0, 1, 3 * HOUR)), quiet=(30, 60), firing=(70, 150)
    ),
    "a judge that is taken out of the configuration": Scene(
        "RagwatchNoFreshSamples",
        _never_scored(f"{climb(0, 1, 100)} {gone(80)}"),
        quiet=(107, 130, 170),
        firing=(70, 99),
    ),
    "a judge of other quantities than before": Scene(
        "RagwatchNoFreshSamples",
        _reading("search", judged=climb(7, 1, 3 * HOUR), scored=climb(0, 1, 3 * HOUR)),
        quiet=(30, 70, 90, 150),
    ),
    "a judge that is put right": Scene(
        "RagwatchNoFreshSamples",
        _reading("search", judged=climb(7, 1, 3 * HOUR), scored=f"{flat(0, 100)} {climb(1, 1, 80)}"),
        quiet=(107, 150),
        firing=(70, 99),
    ),
    "a new version of a judge, of which little is known": Scene(
        "RagwatchJudgeFooled",
        {FOOLED_RATIO: f"{flat(0, 10)} {flat(1, 80)}"}
        | _tested("1", flat(500, 90), flat(0, 90), f"{flat(1, 10)} {gone(80)}")
        | _tested(
            "2", f"{gone(10)} {flat(1, 40)} {flat(20, 40)}", f"{gone(10)} {flat(1, 80)}", f"{gone(10)} {flat(1, 80)}"
        ),
        quiet=(9, 20, 45, 80),
    ),
    "a new version of a judge that accepts what it should not": Scene(
        "RagwatchJudgeFooled",
        {FOOLED_RATIO: flat(0.1, 90)}
        | _tested("1", flat(500, 90), flat(0, 90), f"{flat(1, 10)} {gone(80)}")
        | _tested(
            "2", f"{gone(10)} {flat(10, 40)} {flat(20, 40)}", f"{gone(10)} {flat(2, 80)}", f"{gone(10)} {flat(1, 80)}"
        ),
        quiet=(9, 20, 45),
        firing=(56, 80),
    ),
    "canaries at the start, before the service listens": Scene(
        "RagwatchCanariesFailing",
        _suite("docs", f"{flat(0, 2)} {flat(4, 88)}", f"{flat(60, 11)} {flat(660, 79)}", f"{gone(11)} {flat(660, 79)}"),
        quiet=(5, 8, 12, 20, 40, 80),
    ),
    "canaries that cannot be asked": Scene(
        "RagwatchCanariesFailing",
        _suite("docs", f"{flat(0, 2)} {flat(4, 10)} {flat(8, 60)}", f"{flat(60, 12)} {flat(660, 60)}"),
        quiet=(10,),
        firing=(18, 40),
    ),
    "a pod that is gone, and could not ask its canaries": Scene(
        "RagwatchCanariesFailing",
        _suite("docs", f"{climb(0, 4, 12)} {gone(80)}", f"{climb(0, 60, 12)} {gone(80)}"),
        quiet=(20, 30, 60),
    ),
    "a suite that is run once a day": Scene(
        "RagwatchCanariesStale", _suite("nightly", flat(0, 1500), flat(0, 1600)), quiet=(70, 300, 1440), firing=(1510,)
    ),
    "a suite of once a day that could not be asked on two days": Scene(
        "RagwatchCanariesFailing",
        _suite("nightly", f"{flat(0, 60)} {flat(4, 1440)} {flat(8, 300)}", flat(0, 1900), flat(-1, 1900)),
        quiet=(70, 1400),
        firing=(1510, 1700),
    ),
    "prompt injections counted long ago, and a gap in scraping": Scene(
        "RagwatchPromptInjection",
        {INJECTIONS: f"{flat(5, 60)} {gone(20)} {flat(5, 200)}"},
        quiet=tuple(range(60, 260, 7)),
    ),
}


LONG = "a source that is silent for days"
"""Takes promtool five seconds."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name == LONG)) for name in sorted(SCENES)]
)
def test_an_alert_tells_trouble_from_ordinary_life(name: str, tmp_path: Path) -> None:
    """It is silent at the quiet minutes of a scene, and fires at the others."""
    scene = SCENES[name]
    told = f'count(ALERTS{{alertname="{scene.alert}",alertstate="firing"}})'
    once = [{"labels": "{}", "value": 1}]
    test = {
        "interval": f"{MINUTE}s",
        "input_series": [{"series": series, "values": values} for series, values in scene.series.items()],
        "promql_expr_test": [
            {"expr": told, "eval_time": f"{minute}m", "exp_samples": once if minute in scene.firing else []}
            for minute in (*scene.quiet, *scene.firing)
        ],
    }
    code, output = run(Case(scene.alert, {}, dict.fromkeys(scene.series), {}, {}), tmp_path, [test], MINUTE)
    assert code == 0, output
