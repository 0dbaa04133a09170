"""Defines the series of drift: of answers, of traffic, and of the judge."""

from __future__ import annotations

from ragwatch.exporter.series import Series
from ragwatch.statistics.snapshot import Gauge
from ragwatch.statistics.tally import Tally

DRIFT: tuple[Series, ...] = (
    Series(
        Gauge.DRIFT_EVIDENCE,
        "Evidence of drift from the baseline, from 0 up to the threshold of an alarm, as of the last digest.",
    ),
    Series(
        Gauge.DRIFT_THRESHOLD,
        "Evidence at which a drift alarm is raised: days between false alarms times the number of detectors.",
    ),
    Series(
        Gauge.DRIFT_ALARM,
        "Whether a drift alarm is active (1) or not (0); it ends when the newest answers are back at the baseline.",
    ),
    Series(Gauge.DRIFT_BASELINE, "Mean score that drift is measured against, between 0 and 1."),
    Series(
        Gauge.DRIFT_BEGAN,
        "Estimated Unix timestamp of the first answer after the change that an active drift alarm is about.",
    ),
    Series(
        Gauge.DRIFT_BEFORE,
        "Mean score before the change that an active drift alarm is about: while the baseline was learned, 0 to 1.",
    ),
    Series(
        Gauge.DRIFT_SINCE,
        "Mean score of the answers since the change that an active drift alarm is about, between 0 and 1.",
    ),
    Series(Gauge.DRIFT_ANSWERS, "Number of scores since the change that an active drift alarm is about."),
    Series(
        Gauge.STAGE_CHANGED,
        "Share of answers with a stage at fault whose share has risen significantly, by period: before (while the "
        "baseline was learned) and since; no series where no stage did.",
    ),
    Series(
        Gauge.DRIFT_PAUSED,
        "Whether learning a baseline is paused (1) by a standing alert on the route: canaries, threshold or drift.",
    ),
    Series(
        Gauge.STAGE_BASELINE,
        "Share of answers with each stage at fault while the drift baseline was learned, between 0 and 1.",
    ),
    Series(Gauge.BAND_MEAN, "Mean score in the daily confidence sequence, between 0 and 1, as of the last digest."),
    Series(
        Gauge.BAND_LOW, "Lower limit of the daily confidence sequence, valid at every look; restarts each day (UTC)."
    ),
    Series(
        Gauge.BAND_HIGH, "Upper limit of the daily confidence sequence, valid at every look; restarts each day (UTC)."
    ),
    Series(Gauge.BAND_SCORES, "Number of scores in the daily confidence sequence, as of the last digest."),
    Series(
        Gauge.BAND_SINCE,
        "Unix timestamp at which the confidence sequence started: with the day (UTC), or after its mean had changed.",
    ),
    Series(Tally.DRIFT_ALARMS, "Total number of drift alarms raised.", "ragwatch_drift_alarms_total"),
    Series(
        Gauge.TRAFFIC_DRIFT_EVIDENCE,
        "Evidence that the distribution of a traffic signal has changed, as of the last digest.",
    ),
    Series(
        Gauge.TRAFFIC_DRIFT_THRESHOLD,
        "Evidence at which an alarm about a traffic signal is raised, as of the last digest.",
    ),
    Series(
        Gauge.TRAFFIC_DRIFT_ALARM,
        "Whether the distribution of a traffic signal has changed (1) or not (0); it pages only for gross failures.",
    ),
    Series(
        Gauge.TRAFFIC_DRIFT_BEGAN,
        "Estimated Unix timestamp of the change that an active alarm about a traffic signal is about.",
    ),
    Series(
        Gauge.TRAFFIC_DRIFT_SHARE,
        "Share of answers with a signal whose alarm is active (above a value, if it is a number), by period: before, "
        "while the baseline was learned, and since the change.",
    ),
    Series(
        Gauge.TRAFFIC_DRIFT_SHARE_LOW,
        "Lower bound, with 98 % confidence, of the share since the change. The alert pages by it.",
    ),
    Series(
        Gauge.TRAFFIC_DRIFT_PAUSED,
        "Whether learning the baseline of a traffic signal is paused (1) by a standing alert on the route.",
    ),
    Series(
        Gauge.SILENCE_ALARM,
        "Whether a route has had no answer for longer than its rhythm explains (1) or not (0), as of the last digest.",
    ),
    Series(
        Gauge.SILENCE_MISSED,
        "Number of minutes with an answer that the route usually has in the time since its last answer.",
    ),
    Series(
        Gauge.JUDGE_DRIFT_FLIPS,
        "Share of anchor samples whose verdict differs from the first reading, between 0 and 1.",
    ),
    Series(
        Gauge.JUDGE_DRIFT_ALARM,
        "Whether the judge itself has drifted (1) or not (0); scores before and after are not comparable.",
    ),
    Series(Gauge.AGREEMENT, "Share of labelled answers on which a judge agrees with people, between 0 and 1."),
    Series(Gauge.LABELS, "Number of labels by people that a judge can be compared with."),
    Series(
        Gauge.LABEL_GAIN,
        "Factor by which judge scores multiply the effective number of labels (PPI++), as of the last digest.",
    ),
    Series(Gauge.LABEL_ANNOTATORS, "Number of people whose labels a judge can be compared with."),
    Series(
        Gauge.ANNOTATOR_CHANGE,
        "Greatest change of a corrected mean if the labels of one annotator are left out, as of the last digest.",
    ),
    Series(Gauge.LAST_LABEL, "Unix timestamp of the newest label by a person."),
)
