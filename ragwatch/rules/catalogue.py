"""The catalogue of alerts: what each means, how soon it notifies, and how often it may be wrong.

`docs/alerts.md` and the keys of `alerts.severity` come from this list. Times are those of the default configuration;
each notification also takes up to two evaluations (recording rules, alert: 30 s each) and `group_wait` (30 s).
"""

from __future__ import annotations

from dataclasses import dataclass

PREFIX = "Ragwatch"
_EXACT = "none: a state, not an estimate"
_HOLD = "5 min (`alerts.hold`)"


@dataclass(frozen=True, slots=True)
class AlertEntry:
    """One alert as people read about it.

    Attributes:
        name: Name without the prefix `Ragwatch`.
        meaning: What is the case while it fires.
        delay: Time from the cause to the condition, and how long the condition must hold.
        promise: How often it may fire without a cause.
    """

    name: str
    meaning: str
    delay: str
    promise: str


CATALOGUE: tuple[AlertEntry, ...] = (
    AlertEntry(
        "QualityBad",
        "A quality metric of a route is worse than its threshold: the whole interval of the last hour lies beyond it.",
        f"until the hour is that bad, then {_HOLD}",
        "below 2.5 % at any time for a mean exactly at its threshold, next to 0 for a better one",
    ),
    AlertEntry(
        "QualityDrift",
        "The drift alarm of a quality metric is active, and the last hour is worse than the baseline: at the start the "
        "whole interval, later the mean. Not on routes with a control (`drift.controls`): they have no baseline.",
        "see the table of delays in [statistics](statistics.md); no hold",
        "the alarm: one in `drift.false_alarm_every` (30 d) over all detectors, guaranteed",
    ),
    AlertEntry(
        "QualityDriftStanding",
        "A drift alarm has not been acknowledged, and no page tells of it, or the page ended 12 hours ago. For routes "
        "with a control (`drift.controls`) it is the only alert on drift.",
        _HOLD,
        "as QualityDrift",
    ),
    AlertEntry(
        "ErrorBudgetBurn",
        "The error budget of an objective (`alerts.slos`) is used up soon, over a long and a short window.",
        "1 h, 6 h, 1 d or 3 d windows (`alerts.burns`); no hold",
        "below 2.5 % at any time for an error exactly at the burn rate",
    ),
    AlertEntry(
        "TopContextIgnored",
        "More answers than in the baseline do not use the top-ranked context (drift detector).",
        "as QualityDrift; no hold",
        "as QualityDrift",
    ),
    AlertEntry(
        "TrafficDrift",
        "A signal of all requests differs from its reference: abstentions and empty retrievals warn, others inform.",
        "see the table of delays in [statistics](statistics.md); no hold",
        "one in `drift.traffic.false_alarm_every` (30 d) over all signals, guaranteed",
    ),
    AlertEntry(
        "CanariesDegraded",
        "Canaries no longer retrieve their expected contexts; critical if more than half of a suite do not.",
        f"one run of the suite, then {_HOLD}",
        "none: the same queries are compared with their own results",
    ),
    AlertEntry(
        "CanaryAnswersWrong",
        "The answers to a canary suite score .2 below their median of three days.",
        f"one run of the suite, then {_HOLD}",
        "depends on how much the answers of the service vary; `alerts.canary_answers` is the fall",
    ),
    AlertEntry("CanariesStale", "A canary suite has not run.", f"1 h after its schedule, then {_HOLD}", _EXACT),
    AlertEntry(
        "CanariesFailing",
        "Canary queries got no usable reply in two runs, the last one included.",
        f"two runs of the suite, then {_HOLD}",
        _EXACT,
    ),
    AlertEntry("JudgeFailing", "Most calls to a judge fail.", f"15 min window, then {_HOLD}", _EXACT),
    AlertEntry("JudgeCircuitOpen", "Calls to a judge are suspended.", _HOLD, _EXACT),
    AlertEntry("JudgeFallback", "A judge cannot load its model; the lexical judge reads instead.", _HOLD, _EXACT),
    AlertEntry("JudgeBudgetLow", "A judge has used 90 % of its budget.", _HOLD, _EXACT),
    AlertEntry(
        "JudgeDrift",
        "A judge gives different verdicts on the anchor samples: its scores are not comparable.",
        "one reading of the anchors (`anchors.every`, 1 d); no hold",
        "one in `anchors.false_alarm_every` (90 d)",
    ),
    AlertEntry(
        "JudgeUnverifiedQuotes",
        "A judge calls claims supported without a verbatim quote.",
        f"1 h window, then {_HOLD}",
        _EXACT,
    ),
    AlertEntry(
        "JudgeFooled",
        "A judge accepts known-bad answers with a prompt injection (`judges[].known_bad`).",
        f"20 known-bad answers, then {_HOLD}",
        "2 in 100 judges that accept 1 %, at their first 20 known-bad answers; fewer later",
    ),
    AlertEntry(
        "PromptInjection",
        "Texts sent to a judge contain instructions to it.",
        "at the first such text; no hold",
        "documents about language models contain such texts; therefore it notifies nobody",
    ),
    AlertEntry(
        "SourceSilent",
        "A source that delivered records of users delivers none. Those of canaries do not count.",
        f"1 h (`alerts.silent`), then {_HOLD}",
        _EXACT,
    ),
    AlertEntry(
        "RouteSilent",
        "A route that answers regularly at this time answers nothing; `other` only if no route answers.",
        f"15 min from 120 answers an hour on, else 1 h; then {_HOLD}",
        "below 1e-12 per hour if answers come independently; once where a daily pause is new",
    ),
    AlertEntry("SourceLag", "The oldest unread record is older than 15 min.", f"15 min, then {_HOLD}", _EXACT),
    AlertEntry("SourceUnreadable", "Files of a source cannot be read.", _HOLD, _EXACT),
    AlertEntry(
        "SourceRejects", "More than 5 % of the records of a source are rejected.", f"1 h window, then {_HOLD}", _EXACT
    ),
    AlertEntry(
        "SourceIncomplete",
        "More than 5 % of the requests of a source lack a part (kind join: a record; kind otlp: the first span).",
        f"1 h window, then {_HOLD}",
        _EXACT,
    ),
    AlertEntry("CoverageLow", "Less than 80 % of the draws are judged.", f"1 h window, then {_HOLD}", _EXACT),
    AlertEntry(
        "NoFreshSamples",
        "A judge has scored no answer of a route for 6 h, although it read some.",
        f"6 h (`alerts.stale`) and 15 min, then {_HOLD}",
        _EXACT,
    ),
    AlertEntry("Absent", "Prometheus has no series of ragwatch; nothing is monitored.", _HOLD, _EXACT),
    AlertEntry("Down", "An instance of ragwatch cannot be scraped.", _HOLD, _EXACT),
    AlertEntry("FiguresStale", "The figures of ragwatch are older than 15 min.", f"15 min, then {_HOLD}", _EXACT),
    AlertEntry("ReloadFailed", "ragwatch refused its new configuration.", _HOLD, _EXACT),
    AlertEntry("DiskLow", "Less than 512 MiB are free for the state directory.", _HOLD, _EXACT),
    AlertEntry("StepsFailing", "A background loop fails repeatedly.", f"15 min window, then {_HOLD}", _EXACT),
    AlertEntry(
        "ExportFailing", "No scores reach the endpoint of `export.otlp`.", f"15 min window, then {_HOLD}", _EXACT
    ),
    AlertEntry(
        "WebConfigRefused", "A changed web.config_file or certificate is wrong.", "at once; ends after 1 h", _EXACT
    ),
    AlertEntry("InvariantViolated", "The counters of ragwatch contradict each other.", "at once; no hold", _EXACT),
)
NAMES = frozenset(PREFIX + entry.name for entry in CATALOGUE)
