"""Defines the series of traffic: records read, sampled and judged, signals without a judge, feedback of users."""

from time import monotonic

from ragwatch.exporter.series import FromSnapshot, FromTelemetry, Series, by_name, lag, of_estimate, of_rows, ranked
from ragwatch.model.sample import RejectReason, SkipReason
from ragwatch.model.signals import Signal
from ragwatch.model.stages import Fault, Stage
from ragwatch.statistics.relevance import NoRanking
from ragwatch.statistics.tally import Tally
from ragwatch.statistics.verdict import UnjudgedReason

_SIGNALS = tuple(
    Series(Tally(row.counter), row.help, row.series, from_zero=row.bounds is None, signed=row.signed)
    for row in (signal.row for signal in Signal)
)

_RETRIEVAL: tuple[Series, ...] = (
    Series(
        Tally.RANKED,
        "Total number of answers with relevance judgements whose contexts were ranked, over all traffic.",
        "ragwatch_retrieval_ranked_total",
        from_zero=True,
    ),
    Series(
        Tally.UNRANKED,
        "Total number of answers with relevance judgements that have no ranking, by reason, over all traffic.",
        "ragwatch_retrieval_unranked_total",
        values=NoRanking,
    ),
    Series(
        Tally.RANKING_SCORE,
        "Sum of a ranking metric over ranked answers; divide by their number to get the mean of a time range.",
        "ragwatch_retrieval_score_total",
    ),
    *(
        Series(
            ranked(measure, "route", *labels),
            f"Mean {mean} over answers with relevance judgements since the state was created, 0 to 1.",
            f"ragwatch_retrieval_{name}_ratio",
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

TRAFFIC: tuple[Series, ...] = (
    Series(
        Tally.SEEN,
        "Total number of records read from a source, with rejected ones and those of canaries, without skipped ones.",
        "ragwatch_requests_seen_total",
        from_zero=True,
    ),
    Series(
        Tally.REJECTED,
        "Total number of records rejected because they could not be parsed as a sample, by reason.",
        "ragwatch_requests_rejected_total",
        values=RejectReason,
    ),
    Series(
        FromTelemetry(
            ("source", "reason", "field", "first"),
            lambda telemetry: [(labels, 1) for labels in telemetry.rejections.first(monotonic())],
        ),
        "First record rejected for a reason after an hour without any: its invalid field, and its file and line.",
        "ragwatch_rejections_info",
    ),
    Series(
        Tally.SKIPPED,
        "Total number of lines of a source that are no records of answers (options where and prefix), by reason.",
        "ragwatch_source_lines_skipped_total",
        values=SkipReason,
    ),
    Series(
        Tally.PARTS,
        "Total number of parts of requests that a source of kind join has received and no longer holds, by outcome.",
        "ragwatch_source_parts_total",
    ),
    Series(
        Tally.OF_CANARIES,
        "Total number of records of canary queries (metadata key canary), which count as seen, but not as traffic.",
        "ragwatch_requests_of_canaries_total",
        from_zero=True,
    ),
    Series(
        Tally.INVALID_MARKS,
        "Total number of records whose metadata key canary is no mark of our probes: they count as ordinary answers.",
        "ragwatch_canary_marks_invalid_total",
        from_zero=True,
    ),
    Series(
        Tally.REPAIRED,
        "Total number of records in which invalid UTF-8 was replaced.",
        "ragwatch_records_repaired_total",
        from_zero=True,
    ),
    Series(
        Tally.SUSPECT,
        "Total number of drawn samples that were probably read wrongly, by reason: `ragwatch check` shows an example.",
        "ragwatch_source_suspect_samples_total",
    ),
    Series(
        Tally.FIELDS_LOST,
        "Total number of optional fields (time, id, score ...) that could not be read; their records are read without.",
        "ragwatch_record_fields_lost_total",
    ),
    Series(
        Tally.RESENT,
        "Total number of records that arrived again (their id was received before); they are not counted as seen.",
        "ragwatch_records_resent_total",
    ),
    Series(
        Tally.SPANS,
        "Total number of spans received by a source of kind otlp, including those that were sent again.",
        "ragwatch_otlp_spans_total",
    ),
    Series(
        Tally.SPANS_LEFT_OUT,
        "Total number of spans that became part of no record, by reason: late, no_root or damaged.",
        "ragwatch_otlp_spans_dropped_total",
    ),
    Series(
        Tally.SPAN_TIMES,
        "Total number of spans whose times were in another unit (unit: corrected) or no times (unknown), by problem.",
        "ragwatch_otlp_span_times_wrong_total",
    ),
    Series(
        Tally.TRACES,
        "Total number of requests in the traces of a source, by outcome; only assembled ones become samples.",
        "ragwatch_otlp_requests_total",
    ),
    Series(
        Tally.SILENT,
        "Total number of requests refused because their spans hold no texts (content capture), by instrumentation.",
        "ragwatch_otlp_requests_without_texts_total",
    ),
    Series(
        Tally.LOST,
        "Total number of records that a message broker removed before they were stored, by reason.",
        "ragwatch_records_lost_total",
    ),
    Series(
        Tally.RESETS,
        "Total number of files truncated, replaced, deleted unread or skipped, or consumer groups lost, by reason.",
        "ragwatch_source_resets_total",
    ),
    Series(lag("size"), "Number of unread bytes of a source, as of the last digest.", "ragwatch_source_lag_bytes"),
    Series(
        lag("records"),
        "Number of records of a source that are not stored yet, if it reads from a broker, as of the last digest.",
        "ragwatch_source_lag_records",
    ),
    Series(
        lag("seconds"),
        "Age of the oldest unread record of a source in seconds, 0 if none is unread, as of the last digest.",
        "ragwatch_source_lag_seconds",
    ),
    Series(
        FromSnapshot(
            ("source",), lambda snapshot: [((name,), len(one.unreadable)) for name, one in snapshot.lags.items()]
        ),
        "Number of files of a source that are unreadable, missing, or deleted while written to, as of the last digest.",
        "ragwatch_source_unreadable_files",
    ),
    Series(
        lag("closed"),
        "Number of files of a source closed between reads because the limit on open files is reached; none is skipped.",
        "ragwatch_source_closed_files",
    ),
    Series(
        by_name("route", "probabilities"),
        "Inclusion probability of an answer on the route, between 0 and 1, as of the last digest.",
        "ragwatch_sampling_probability",
    ),
    Series(
        Tally.DRAWN,
        "Total number of answers sampled for judging (draws).",
        "ragwatch_samples_drawn_total",
        from_zero=True,
    ),
    Series(
        Tally.ASSIGNED,
        "Total number of draws assigned to a judge: judged, unjudged or pending.",
        "ragwatch_samples_assigned_total",
        from_zero=True,
    ),
    Series(Tally.JUDGED, "Total number of draws that were judged.", "ragwatch_samples_judged_total", from_zero=True),
    Series(
        Tally.UNJUDGED,
        "Total number of draws that could not be judged, by reason.",
        "ragwatch_samples_unjudged_total",
        values=UnjudgedReason,
    ),
    Series(
        FromSnapshot((), lambda snapshot: [((), sum(snapshot.pending.values()))] if snapshot.leads else []),
        "Number of draws waiting for a judge, summed over judges, as of the last digest.",
        "ragwatch_samples_pending",
    ),
    Series(
        FromSnapshot(("route", "judge", "window"), lambda snapshot: snapshot.coverage.items()),
        "Judged share of the weighted draws in the window, between 0 and 1, as of the last digest.",
        "ragwatch_coverage_ratio",
    ),
    Series(
        Tally.UNKNOWN,
        "Total number of judged answers without a score for a quantity, by reason.",
        "ragwatch_scores_unknown_total",
    ),
    Series(
        Tally.STAGE,
        "Total number of judged answers by stage at fault; stage none counts the good answers.",
        "ragwatch_stage_samples_total",
        values=Stage,
        default_judge=True,
    ),
    Series(
        Tally.FAULT,
        "Total number of judged answers that did not use the top-ranked context, by fault.",
        "ragwatch_top_ranked_fault_samples_total",
        values=Fault,
        default_judge=True,
    ),
    *_SIGNALS,
    *_RETRIEVAL,
    Series(
        Tally.REDACTED,
        "Total number of secrets and PII values redacted before storing or judging, by type.",
        "ragwatch_secrets_redacted_total",
    ),
)


_END = "limit of the confidence interval for the mean score by users, between 0 and 1, as of the last digest."
_CORRELATION_END = "limit of the confidence interval for the correlation of scores by users and by a judge, -1 to 1."
FEEDBACK: tuple[Series, ...] = (
    *of_estimate(
        "user_score",
        lambda figure: of_rows("user_scores.rows", ("route", "window"), f"estimate.{figure}"),
        {
            "value": "Mean score by users of the answers that they chose to rate, between 0 and 1, as of the last "
            "digest.",
            "low": f"Lower {_END}",
            "high": f"Upper {_END}",
            "bound_low": "Worst-case (Manski) lower bound: every answer without feedback counts as 0, as of the last "
            "digest.",
            "bound_high": "Worst-case (Manski) upper bound: every answer without feedback counts as 1, as of the last "
            "digest.",
            "coverage": "Share of the sampled answers that have feedback, which users choose, 0 to 1, as of the last "
            "digest.",
            "n": "Number of sampled answers with feedback over the window, as of the last digest.",
            "n_eff": "Effective sample size (Kish) of the mean score by users, as of the last digest.",
        },
    ),
    Series(
        by_name("route", "user_scores.last_sample"),
        "Unix timestamp of the newest sampled answer that has feedback, as of the last digest.",
        "ragwatch_user_score_last_sample_timestamp_seconds",
    ),
    *of_estimate(
        "user_score_correlation",
        lambda figure: of_rows("user_scores.correlations", ("judge", "quantity"), f"correlation.{figure}"),
        {
            "value": "Correlation (Pearson) of scores by users and by a judge over rated answers of the longest "
            "window, -1 to 1.",
            "low": f"Lower {_CORRELATION_END}",
            "high": f"Upper {_CORRELATION_END}",
            "n": "Number of answers with both a score by a user and one by a judge, in the correlation of the two.",
        },
    ),
    Series(
        Tally.FEEDBACK,
        "Total number of ratings received from users, by outcome: joined to its sample, or why not.",
    ),
)
