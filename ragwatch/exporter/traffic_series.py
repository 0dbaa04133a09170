"""Defines the series of traffic: records read, sampled and judged, signals without a judge, feedback of users."""

from __future__ import annotations

from time import monotonic

from ragwatch.core.relevance import NoRanking
from ragwatch.core.sample import RejectReason, SkipReason
from ragwatch.core.tally import Tally
from ragwatch.core.verdict import UnjudgedReason
from ragwatch.exporter.figures import FromSnapshot, FromTelemetry, by_name, correlations, lag, ranked, user_scores
from ragwatch.exporter.series import SeriesDefinition
from ragwatch.model.signals import Signal
from ragwatch.model.stages import Fault, Stage

_SIGNALS = tuple(
    SeriesDefinition(row.series, row.help, Tally(row.counter), from_zero=row.bounds is None, signed=row.signed)
    for row in (signal.row for signal in Signal)
)

_RETRIEVAL: tuple[SeriesDefinition, ...] = (
    SeriesDefinition(
        "ragwatch_retrieval_ranked_total",
        "Total number of answers with relevance judgements whose contexts were ranked, over all traffic.",
        Tally.RANKED,
        from_zero=True,
    ),
    SeriesDefinition(
        "ragwatch_retrieval_unranked_total",
        "Total number of answers with relevance judgements that have no ranking, by reason, over all traffic.",
        Tally.UNRANKED,
        from_zero=True,
        values=NoRanking,
    ),
    SeriesDefinition(
        "ragwatch_retrieval_score_total",
        "Sum of a ranking metric over ranked answers; divide by their number to get the mean of a time range.",
        Tally.RANKING_SCORE,
    ),
    *(
        SeriesDefinition(
            f"ragwatch_retrieval_{name}_ratio",
            f"Mean {mean} over answers with relevance judgements since the state was created, 0 to 1.",
            ranked(measure, "route", *labels),
        )
        for name, mean, measure, labels in (
            ("recall", "recall within the top k", "recall", ("k",)),
            ("precision", "precision of the top k", "precision", ("k",)),
            ("f1", "F1 of the top k", "f1", ("k",)),
            ("ndcg", "NDCG of the top k", "ndcg", ("k",)),
            ("reciprocal_rank", "reciprocal rank (MRR)", "mrr", ()),
        )
    ),
)

TRAFFIC: tuple[SeriesDefinition, ...] = (
    SeriesDefinition(
        "ragwatch_requests_seen_total",
        "Total number of records read from a source, with rejected ones and those of canaries, without skipped ones.",
        Tally.SEEN,
        from_zero=True,
    ),
    SeriesDefinition(
        "ragwatch_requests_rejected_total",
        "Total number of records rejected because they could not be parsed as a sample, by reason.",
        Tally.REJECTED,
        from_zero=True,
        values=RejectReason,
    ),
    SeriesDefinition(
        "ragwatch_rejections_info",
        "First record rejected for a reason after an hour without any: its invalid field, and its file and line.",
        FromTelemetry(
            ("source", "reason", "field", "first"),
            lambda telemetry: [(labels, 1) for labels in telemetry.rejections.first(monotonic())],
        ),
    ),
    SeriesDefinition(
        "ragwatch_source_lines_skipped_total",
        "Total number of lines of a source that are no records of answers (options where and prefix), by reason.",
        Tally.SKIPPED,
        from_zero=True,
        values=SkipReason,
    ),
    SeriesDefinition(
        "ragwatch_source_parts_total",
        "Total number of parts of requests that a source of kind join has received and no longer holds, by outcome.",
        Tally.PARTS,
    ),
    SeriesDefinition(
        "ragwatch_requests_of_canaries_total",
        "Total number of records of canary queries (metadata key canary), which count as seen, but not as traffic.",
        Tally.OF_CANARIES,
        from_zero=True,
    ),
    SeriesDefinition(
        "ragwatch_canary_marks_invalid_total",
        "Total number of records whose metadata key canary is no mark of our probes: they count as ordinary answers.",
        Tally.INVALID_MARKS,
        from_zero=True,
    ),
    SeriesDefinition(
        "ragwatch_records_repaired_total",
        "Total number of records in which invalid UTF-8 was replaced.",
        Tally.REPAIRED,
        from_zero=True,
    ),
    SeriesDefinition(
        "ragwatch_source_suspect_samples_total",
        "Total number of drawn samples that were probably read wrongly, by reason: `ragwatch check` shows an example.",
        Tally.SUSPECT,
    ),
    SeriesDefinition(
        "ragwatch_record_fields_lost_total",
        "Total number of optional fields (time, id, score ...) that could not be read; their records are read without.",
        Tally.FIELDS_LOST,
    ),
    SeriesDefinition(
        "ragwatch_records_resent_total",
        "Total number of records that arrived again (their id was received before); they are not counted as seen.",
        Tally.RESENT,
    ),
    SeriesDefinition(
        "ragwatch_otlp_spans_total",
        "Total number of spans received by a source of kind otlp, including those that were sent again.",
        Tally.SPANS,
    ),
    SeriesDefinition(
        "ragwatch_otlp_spans_dropped_total",
        "Total number of spans that became part of no record, by reason: late, no_root or damaged.",
        Tally.SPANS_LEFT_OUT,
    ),
    SeriesDefinition(
        "ragwatch_otlp_span_times_wrong_total",
        "Total number of spans whose times were in another unit (unit: corrected) or no times (unknown), by problem.",
        Tally.SPAN_TIMES,
    ),
    SeriesDefinition(
        "ragwatch_otlp_requests_total",
        "Total number of requests in the traces of a source, by outcome; only assembled ones become samples.",
        Tally.TRACES,
    ),
    SeriesDefinition(
        "ragwatch_otlp_requests_without_texts_total",
        "Total number of requests refused because their spans hold no texts (content capture), by instrumentation.",
        Tally.SILENT,
    ),
    SeriesDefinition(
        "ragwatch_records_lost_total",
        "Total number of records that a message broker removed before they were stored, by reason.",
        Tally.LOST,
    ),
    SeriesDefinition(
        "ragwatch_source_resets_total",
        "Total number of files truncated, replaced, deleted unread or skipped, or consumer groups lost, by reason.",
        Tally.RESETS,
    ),
    SeriesDefinition(
        "ragwatch_source_lag_bytes",
        "Number of unread bytes of a source, as of the last digest.",
        lag("size"),
    ),
    SeriesDefinition(
        "ragwatch_source_lag_records",
        "Number of records of a source that are not stored yet, if it reads from a broker, as of the last digest.",
        lag("records"),
    ),
    SeriesDefinition(
        "ragwatch_source_lag_seconds",
        "Age of the oldest unread record of a source in seconds, 0 if none is unread, as of the last digest.",
        lag("seconds"),
    ),
    SeriesDefinition(
        "ragwatch_source_unreadable_files",
        "Number of files of a source that are unreadable, missing, or deleted while written to, as of the last digest.",
        FromSnapshot(
            ("source",), lambda snapshot: [((name,), len(one.unreadable)) for name, one in snapshot.lags.items()]
        ),
    ),
    SeriesDefinition(
        "ragwatch_source_closed_files",
        "Number of files of a source closed between reads because the limit on open files is reached; none is skipped.",
        lag("closed"),
    ),
    SeriesDefinition(
        "ragwatch_sampling_probability",
        "Inclusion probability of an answer on the route, between 0 and 1, as of the last digest.",
        by_name("route", "probabilities"),
    ),
    SeriesDefinition(
        "ragwatch_samples_drawn_total",
        "Total number of answers sampled for judging (draws).",
        Tally.DRAWN,
        from_zero=True,
    ),
    SeriesDefinition(
        "ragwatch_samples_assigned_total",
        "Total number of draws assigned to a judge: judged, unjudged or pending.",
        Tally.ASSIGNED,
        from_zero=True,
    ),
    SeriesDefinition(
        "ragwatch_samples_judged_total",
        "Total number of draws that were judged.",
        Tally.JUDGED,
        from_zero=True,
    ),
    SeriesDefinition(
        "ragwatch_samples_unjudged_total",
        "Total number of draws that could not be judged, by reason.",
        Tally.UNJUDGED,
        from_zero=True,
        values=UnjudgedReason,
    ),
    SeriesDefinition(
        "ragwatch_samples_pending",
        "Number of draws waiting for a judge, summed over judges, as of the last digest.",
        FromSnapshot((), lambda snapshot: [((), sum(snapshot.pending.values()))] if snapshot.leads else []),
    ),
    SeriesDefinition(
        "ragwatch_coverage_ratio",
        "Judged share of the weighted draws in the window, between 0 and 1, as of the last digest.",
        FromSnapshot(("route", "judge", "window"), lambda snapshot: snapshot.coverage.items()),
    ),
    SeriesDefinition(
        "ragwatch_scores_unknown_total",
        "Total number of judged answers without a score for a quantity, by reason.",
        Tally.UNKNOWN,
    ),
    SeriesDefinition(
        "ragwatch_stage_samples_total",
        "Total number of judged answers by stage at fault; stage none counts the good answers.",
        Tally.STAGE,
        from_zero=True,
        values=Stage,
        default_judge=True,
    ),
    SeriesDefinition(
        "ragwatch_top_ranked_fault_samples_total",
        "Total number of judged answers that did not use the top-ranked context, by fault.",
        Tally.FAULT,
        from_zero=True,
        values=Fault,
        default_judge=True,
    ),
    *_SIGNALS,
    *_RETRIEVAL,
    SeriesDefinition(
        "ragwatch_secrets_redacted_total",
        "Total number of secrets and PII values redacted before storing or judging, by type.",
        Tally.REDACTED,
    ),
)


FEEDBACK: tuple[SeriesDefinition, ...] = (
    SeriesDefinition(
        "ragwatch_user_score_ratio",
        "Mean score by users of the answers that they chose to rate, between 0 and 1, as of the last digest.",
        user_scores("value"),
    ),
    SeriesDefinition(
        "ragwatch_user_score_ratio_low",
        "Lower limit of the confidence interval for the mean score by users, between 0 and 1, as of the last digest.",
        user_scores("low"),
    ),
    SeriesDefinition(
        "ragwatch_user_score_ratio_high",
        "Upper limit of the confidence interval for the mean score by users, between 0 and 1, as of the last digest.",
        user_scores("high"),
    ),
    SeriesDefinition(
        "ragwatch_user_score_ratio_bound_low",
        "Worst-case (Manski) lower bound: every answer without feedback counts as 0, as of the last digest.",
        user_scores("bound_low"),
    ),
    SeriesDefinition(
        "ragwatch_user_score_ratio_bound_high",
        "Worst-case (Manski) upper bound: every answer without feedback counts as 1, as of the last digest.",
        user_scores("bound_high"),
    ),
    SeriesDefinition(
        "ragwatch_user_score_response_ratio",
        "Share of the sampled answers that have feedback, which users choose, 0 to 1, as of the last digest.",
        user_scores("coverage"),
    ),
    SeriesDefinition(
        "ragwatch_user_score_samples",
        "Number of sampled answers with feedback over the window, as of the last digest.",
        user_scores("n"),
    ),
    SeriesDefinition(
        "ragwatch_user_score_effective_samples",
        "Effective sample size (Kish) of the mean score by users, as of the last digest.",
        user_scores("n_eff"),
    ),
    SeriesDefinition(
        "ragwatch_user_score_last_sample_timestamp_seconds",
        "Unix timestamp of the newest sampled answer that has feedback, as of the last digest.",
        FromSnapshot(
            ("route",), lambda snapshot: [((route,), at) for route, at in snapshot.user_scores.last_sample.items()]
        ),
    ),
    SeriesDefinition(
        "ragwatch_user_score_correlation_ratio",
        "Correlation (Pearson) of scores by users and by a judge over rated answers of the longest window, -1 to 1.",
        correlations("value"),
    ),
    SeriesDefinition(
        "ragwatch_user_score_correlation_ratio_low",
        "Lower limit of the confidence interval for the correlation of scores by users and by a judge, -1 to 1.",
        correlations("low"),
    ),
    SeriesDefinition(
        "ragwatch_user_score_correlation_ratio_high",
        "Upper limit of the confidence interval for the correlation of scores by users and by a judge, -1 to 1.",
        correlations("high"),
    ),
    SeriesDefinition(
        "ragwatch_user_score_correlation_samples",
        "Number of answers with both a score by a user and one by a judge, in the correlation of the two.",
        correlations("n"),
    ),
    SeriesDefinition(
        "ragwatch_feedback_total",
        "Total number of ratings received from users, by outcome: joined to its sample, or why not.",
        Tally.FEEDBACK,
    ),
)
