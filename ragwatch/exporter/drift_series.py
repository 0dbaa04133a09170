"""Defines the series of drift: of answers, of traffic, and of the judge."""

from __future__ import annotations

from ragwatch.core.snapshot import Gauge
from ragwatch.core.tally import Tally
from ragwatch.exporter.series import MetricType, SeriesDefinition

_C, _G = MetricType.COUNTER, MetricType.GAUGE

DRIFT: tuple[SeriesDefinition, ...] = (
    SeriesDefinition(
        "ragwatch_drift_evidence",
        _G,
        "Evidence of drift from the baseline, from 0 up to the threshold of an alarm, as of the last digest.",
        ("quantity", "route"),
        Gauge.DRIFT_EVIDENCE,
    ),
    SeriesDefinition(
        "ragwatch_drift_evidence_threshold",
        _G,
        "Evidence at which a drift alarm is raised: days between false alarms times the number of detectors.",
        ("quantity", "route"),
        Gauge.DRIFT_THRESHOLD,
    ),
    SeriesDefinition(
        "ragwatch_drift_alarm",
        _G,
        "Whether a drift alarm is active (1) or not (0); it stays active until it is acknowledged or renewed.",
        ("quantity", "route"),
        Gauge.DRIFT_ALARM,
    ),
    SeriesDefinition(
        "ragwatch_drift_baseline_ratio",
        _G,
        "Mean score that drift is measured against, between 0 and 1.",
        ("quantity", "route"),
        Gauge.DRIFT_BASELINE,
    ),
    SeriesDefinition(
        "ragwatch_drift_baseline_paused",
        _G,
        "Whether learning a baseline is paused (1) by a standing alert on the route: canaries, threshold or drift.",
        ("quantity", "route", "reason"),
        Gauge.DRIFT_PAUSED,
    ),
    SeriesDefinition(
        "ragwatch_stage_baseline_ratio",
        _G,
        "Share of answers with each stage at fault while the drift baseline was learned, between 0 and 1.",
        ("route", "stage"),
        Gauge.STAGE_BASELINE,
    ),
    SeriesDefinition(
        "ragwatch_drift_band_ratio",
        _G,
        "Mean score in the daily confidence sequence, between 0 and 1, as of the last digest.",
        ("quantity", "route"),
        Gauge.BAND_MEAN,
    ),
    SeriesDefinition(
        "ragwatch_drift_band_ratio_low",
        _G,
        "Lower limit of the daily confidence sequence, valid at every look; restarts each day (UTC).",
        ("quantity", "route"),
        Gauge.BAND_LOW,
    ),
    SeriesDefinition(
        "ragwatch_drift_band_ratio_high",
        _G,
        "Upper limit of the daily confidence sequence, valid at every look; restarts each day (UTC).",
        ("quantity", "route"),
        Gauge.BAND_HIGH,
    ),
    SeriesDefinition(
        "ragwatch_drift_band_samples",
        _G,
        "Number of scores in the daily confidence sequence, as of the last digest.",
        ("quantity", "route"),
        Gauge.BAND_SCORES,
    ),
    SeriesDefinition(
        "ragwatch_drift_band_start_timestamp_seconds",
        _G,
        "Unix timestamp at which the confidence sequence started: with the day (UTC), or after its mean had changed.",
        ("quantity", "route"),
        Gauge.BAND_SINCE,
    ),
    SeriesDefinition(
        "ragwatch_drift_alarms_total",
        _C,
        "Total number of drift alarms raised.",
        ("quantity", "route"),
        Tally.DRIFT_ALARMS,
    ),
    SeriesDefinition(
        "ragwatch_traffic_drift_evidence",
        _G,
        "Evidence that the distribution of a traffic signal has changed, as of the last digest.",
        ("signal", "route"),
        Gauge.TRAFFIC_DRIFT_EVIDENCE,
    ),
    SeriesDefinition(
        "ragwatch_traffic_drift_evidence_threshold",
        _G,
        "Evidence at which an alarm about a traffic signal is raised, as of the last digest.",
        ("signal", "route"),
        Gauge.TRAFFIC_DRIFT_THRESHOLD,
    ),
    SeriesDefinition(
        "ragwatch_traffic_drift_alarm",
        _G,
        "Whether the distribution of a traffic signal has changed (1) or not (0); an early warning that does not page.",
        ("signal", "route"),
        Gauge.TRAFFIC_DRIFT_ALARM,
    ),
    SeriesDefinition(
        "ragwatch_traffic_drift_baseline_paused",
        _G,
        "Whether learning the baseline of a traffic signal is paused (1) by a standing alert on the route.",
        ("signal", "route", "reason"),
        Gauge.TRAFFIC_DRIFT_PAUSED,
    ),
    SeriesDefinition(
        "ragwatch_judge_drift_flips_ratio",
        _G,
        "Share of anchor samples whose verdict differs from the first reading, between 0 and 1.",
        ("judge",),
        Gauge.JUDGE_DRIFT_FLIPS,
    ),
    SeriesDefinition(
        "ragwatch_judge_drift_alarm",
        _G,
        "Whether the judge itself has drifted (1) or not (0); scores before and after are not comparable.",
        ("judge",),
        Gauge.JUDGE_DRIFT_ALARM,
    ),
    SeriesDefinition(
        "ragwatch_judge_agreement_ratio",
        _G,
        "Share of labelled answers on which a judge agrees with people, between 0 and 1.",
        ("judge", "quantity"),
        Gauge.AGREEMENT,
    ),
    SeriesDefinition(
        "ragwatch_judge_labels",
        _G,
        "Number of labels by people that a judge can be compared with.",
        ("quantity",),
        Gauge.LABELS,
    ),
    SeriesDefinition(
        "ragwatch_judge_label_gain_ratio",
        _G,
        "Factor by which judge scores multiply the effective number of labels (PPI++), as of the last digest.",
        ("quantity", "route", "window"),
        Gauge.LABEL_GAIN,
    ),
    SeriesDefinition(
        "ragwatch_judge_label_annotators",
        _G,
        "Number of people whose labels a judge can be compared with.",
        ("quantity",),
        Gauge.LABEL_ANNOTATORS,
    ),
    SeriesDefinition(
        "ragwatch_judge_annotator_change_ratio",
        _G,
        "Greatest change of a corrected mean if the labels of one annotator are left out, as of the last digest.",
        ("quantity", "route", "window"),
        Gauge.ANNOTATOR_CHANGE,
    ),
    SeriesDefinition(
        "ragwatch_judge_last_label_timestamp_seconds",
        _G,
        "Unix timestamp of the newest label by a person.",
        (),
        Gauge.LAST_LABEL,
    ),
)
