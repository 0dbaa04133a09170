"""Series of drift: of answers, of traffic, and of the judge."""

from __future__ import annotations

from ragwatch.core.snapshot import Gauge
from ragwatch.core.tally import Tally
from ragwatch.exporter.series import Kind, Series

_C, _G = Kind.COUNTER, Kind.GAUGE

DRIFT: tuple[Series, ...] = (
    Series(
        "ragwatch_drift_evidence",
        _G,
        "Evidence against the baseline, 0 at the start; an alarm at the threshold, as of the last digest.",
        ("quantity", "route"),
        Gauge.DRIFT_EVIDENCE,
    ),
    Series(
        "ragwatch_drift_evidence_threshold",
        _G,
        "Evidence at which a drift alarm is raised: days between two false alarms times the number of detectors.",
        ("quantity", "route"),
        Gauge.DRIFT_THRESHOLD,
    ),
    Series(
        "ragwatch_drift_alarm",
        _G,
        "Whether a drift alarm stands, 1 or 0; it stands until it is acknowledged or the baseline renewed.",
        ("quantity", "route"),
        Gauge.DRIFT_ALARM,
    ),
    Series(
        "ragwatch_drift_baseline_ratio",
        _G,
        "Mean score that drift is measured against, 0 to 1.",
        ("quantity", "route"),
        Gauge.DRIFT_BASELINE,
    ),
    Series(
        "ragwatch_drift_band_ratio",
        _G,
        "Mean of the scores in the confidence sequence of the day, 0 to 1, as of the last digest.",
        ("quantity", "route"),
        Gauge.BAND_MEAN,
    ),
    Series(
        "ragwatch_drift_band_ratio_low",
        _G,
        "Lower end of a confidence sequence, which holds however often it is looked at; anew every day (UTC).",
        ("quantity", "route"),
        Gauge.BAND_LOW,
    ),
    Series(
        "ragwatch_drift_band_ratio_high",
        _G,
        "Upper end of a confidence sequence, which holds however often it is looked at; anew every day (UTC).",
        ("quantity", "route"),
        Gauge.BAND_HIGH,
    ),
    Series(
        "ragwatch_drift_band_samples",
        _G,
        "Number of scores in the confidence sequence of the day, as of the last digest.",
        ("quantity", "route"),
        Gauge.BAND_SCORES,
    ),
    Series(
        "ragwatch_drift_band_start_timestamp_seconds",
        _G,
        "When the confidence sequence began, in seconds since the epoch: with the day, or when the mean had moved.",
        ("quantity", "route"),
        Gauge.BAND_SINCE,
    ),
    Series(
        "ragwatch_drift_alarms_total",
        _C,
        "Drift alarms raised.",
        ("quantity", "route"),
        Tally.DRIFT_ALARMS,
    ),
    Series(
        "ragwatch_traffic_drift_evidence",
        _G,
        "Evidence that a signal of all traffic has changed its distribution, as of the last digest.",
        ("signal", "route"),
        Gauge.TRAFFIC_DRIFT_EVIDENCE,
    ),
    Series(
        "ragwatch_traffic_drift_alarm",
        _G,
        "Whether such a change was noticed, 1 or 0: an early warning, no page.",
        ("signal", "route"),
        Gauge.TRAFFIC_DRIFT_ALARM,
    ),
    Series(
        "ragwatch_judge_drift_flips_ratio",
        _G,
        "Share of fixed samples whose verdict differs from that of the first reading, 0 to 1.",
        ("judge",),
        Gauge.JUDGE_DRIFT_FLIPS,
    ),
    Series(
        "ragwatch_judge_drift_alarm",
        _G,
        "Whether the judge itself has changed, 1 or 0: quality figures then mean something else.",
        ("judge",),
        Gauge.JUDGE_DRIFT_ALARM,
    ),
    Series(
        "ragwatch_judge_agreement_ratio",
        _G,
        "Share of answers on which a judge and people agree, 0 to 1.",
        ("judge", "quantity"),
        Gauge.AGREEMENT,
    ),
    Series(
        "ragwatch_judge_labels",
        _G,
        "Number of people's words on answers that a judge can be compared with at present.",
        ("quantity",),
        Gauge.LABELS,
    ),
    Series(
        "ragwatch_judge_label_gain_ratio",
        _G,
        "How many labels alone would say as much as one label beside the judges, as of the last digest.",
        ("quantity", "route", "window"),
        Gauge.LABEL_GAIN,
    ),
    Series(
        "ragwatch_judge_last_label_timestamp_seconds",
        _G,
        "When a person last gave their word on an answer, in seconds since the epoch.",
        (),
        Gauge.LAST_LABEL,
    ),
)
