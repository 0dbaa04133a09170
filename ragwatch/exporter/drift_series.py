"""Defines the series of drift: of answers, of traffic, and of the judge."""

from __future__ import annotations

from ragwatch.core.snapshot import Gauge
from ragwatch.core.tally import Tally
from ragwatch.exporter.series import SeriesDefinition

DRIFT: tuple[SeriesDefinition, ...] = (
    SeriesDefinition(
        "ragwatch_drift_evidence",
        "Evidence of drift from the baseline, from 0 up to the threshold of an alarm, as of the last digest.",
        Gauge.DRIFT_EVIDENCE,
    ),
    SeriesDefinition(
        "ragwatch_drift_evidence_threshold",
        "Evidence at which a drift alarm is raised: days between false alarms times the number of detectors.",
        Gauge.DRIFT_THRESHOLD,
    ),
    SeriesDefinition(
        "ragwatch_drift_alarm",
        "Whether a drift alarm is active (1) or not (0); it ends when the newest answers are back at the baseline.",
        Gauge.DRIFT_ALARM,
    ),
    SeriesDefinition(
        "ragwatch_drift_baseline_ratio",
        "Mean score that drift is measured against, between 0 and 1.",
        Gauge.DRIFT_BASELINE,
    ),
    SeriesDefinition(
        "ragwatch_drift_change_start_timestamp_seconds",
        "Estimated Unix timestamp of the first answer after the change that an active drift alarm is about.",
        Gauge.DRIFT_BEGAN,
    ),
    SeriesDefinition(
        "ragwatch_drift_before_ratio",
        "Mean score before the change that an active drift alarm is about: while the baseline was learned, 0 to 1.",
        Gauge.DRIFT_BEFORE,
    ),
    SeriesDefinition(
        "ragwatch_drift_since_ratio",
        "Mean score of the answers since the change that an active drift alarm is about, between 0 and 1.",
        Gauge.DRIFT_SINCE,
    ),
    SeriesDefinition(
        "ragwatch_drift_since_samples",
        "Number of scores since the change that an active drift alarm is about.",
        Gauge.DRIFT_ANSWERS,
    ),
    SeriesDefinition(
        "ragwatch_drift_stage_ratio",
        "Share of answers with a stage at fault whose share has risen significantly, by period: before (while the "
        "baseline was learned) and since; no series where no stage did.",
        Gauge.STAGE_CHANGED,
    ),
    SeriesDefinition(
        "ragwatch_drift_baseline_paused",
        "Whether learning a baseline is paused (1) by a standing alert on the route: canaries, threshold or drift.",
        Gauge.DRIFT_PAUSED,
    ),
    SeriesDefinition(
        "ragwatch_stage_baseline_ratio",
        "Share of answers with each stage at fault while the drift baseline was learned, between 0 and 1.",
        Gauge.STAGE_BASELINE,
    ),
    SeriesDefinition(
        "ragwatch_drift_band_ratio",
        "Mean score in the daily confidence sequence, between 0 and 1, as of the last digest.",
        Gauge.BAND_MEAN,
    ),
    SeriesDefinition(
        "ragwatch_drift_band_ratio_low",
        "Lower limit of the daily confidence sequence, valid at every look; restarts each day (UTC).",
        Gauge.BAND_LOW,
    ),
    SeriesDefinition(
        "ragwatch_drift_band_ratio_high",
        "Upper limit of the daily confidence sequence, valid at every look; restarts each day (UTC).",
        Gauge.BAND_HIGH,
    ),
    SeriesDefinition(
        "ragwatch_drift_band_samples",
        "Number of scores in the daily confidence sequence, as of the last digest.",
        Gauge.BAND_SCORES,
    ),
    SeriesDefinition(
        "ragwatch_drift_band_start_timestamp_seconds",
        "Unix timestamp at which the confidence sequence started: with the day (UTC), or after its mean had changed.",
        Gauge.BAND_SINCE,
    ),
    SeriesDefinition(
        "ragwatch_drift_alarms_total",
        "Total number of drift alarms raised.",
        Tally.DRIFT_ALARMS,
    ),
    SeriesDefinition(
        "ragwatch_traffic_drift_evidence",
        "Evidence that the distribution of a traffic signal has changed, as of the last digest.",
        Gauge.TRAFFIC_DRIFT_EVIDENCE,
    ),
    SeriesDefinition(
        "ragwatch_traffic_drift_evidence_threshold",
        "Evidence at which an alarm about a traffic signal is raised, as of the last digest.",
        Gauge.TRAFFIC_DRIFT_THRESHOLD,
    ),
    SeriesDefinition(
        "ragwatch_traffic_drift_alarm",
        "Whether the distribution of a traffic signal has changed (1) or not (0); it pages only for gross failures.",
        Gauge.TRAFFIC_DRIFT_ALARM,
    ),
    SeriesDefinition(
        "ragwatch_traffic_drift_start_timestamp_seconds",
        "Estimated Unix timestamp of the change that an active alarm about a traffic signal is about.",
        Gauge.TRAFFIC_DRIFT_BEGAN,
    ),
    SeriesDefinition(
        "ragwatch_traffic_drift_ratio",
        "Share of answers with a signal whose alarm is active (above a value, if it is a number), by period: before, "
        "while the baseline was learned, and since the change.",
        Gauge.TRAFFIC_DRIFT_SHARE,
    ),
    SeriesDefinition(
        "ragwatch_traffic_drift_baseline_paused",
        "Whether learning the baseline of a traffic signal is paused (1) by a standing alert on the route.",
        Gauge.TRAFFIC_DRIFT_PAUSED,
    ),
    SeriesDefinition(
        "ragwatch_silence_alarm",
        "Whether a route has had no answer for longer than its rhythm explains (1) or not (0), as of the last digest.",
        Gauge.SILENCE_ALARM,
    ),
    SeriesDefinition(
        "ragwatch_silence_missed_samples",
        "Number of minutes with an answer that the route usually has in the time since its last answer.",
        Gauge.SILENCE_MISSED,
    ),
    SeriesDefinition(
        "ragwatch_judge_drift_flips_ratio",
        "Share of anchor samples whose verdict differs from the first reading, between 0 and 1.",
        Gauge.JUDGE_DRIFT_FLIPS,
    ),
    SeriesDefinition(
        "ragwatch_judge_drift_alarm",
        "Whether the judge itself has drifted (1) or not (0); scores before and after are not comparable.",
        Gauge.JUDGE_DRIFT_ALARM,
    ),
    SeriesDefinition(
        "ragwatch_judge_agreement_ratio",
        "Share of labelled answers on which a judge agrees with people, between 0 and 1.",
        Gauge.AGREEMENT,
    ),
    SeriesDefinition(
        "ragwatch_judge_labels",
        "Number of labels by people that a judge can be compared with.",
        Gauge.LABELS,
    ),
    SeriesDefinition(
        "ragwatch_judge_label_gain_ratio",
        "Factor by which judge scores multiply the effective number of labels (PPI++), as of the last digest.",
        Gauge.LABEL_GAIN,
    ),
    SeriesDefinition(
        "ragwatch_judge_label_annotators",
        "Number of people whose labels a judge can be compared with.",
        Gauge.LABEL_ANNOTATORS,
    ),
    SeriesDefinition(
        "ragwatch_judge_annotator_change_ratio",
        "Greatest change of a corrected mean if the labels of one annotator are left out, as of the last digest.",
        Gauge.ANNOTATOR_CHANGE,
    ),
    SeriesDefinition(
        "ragwatch_judge_last_label_timestamp_seconds",
        "Unix timestamp of the newest label by a person.",
        Gauge.LAST_LABEL,
    ),
)
