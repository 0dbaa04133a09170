-- Counters are stored with the names of their labels. Earlier rows have none, and labels in the order below.
ALTER TABLE tallies ADD COLUMN label_names TEXT;  -- JSON list, in the order of `labels`
WITH known (name, label_names) AS (VALUES
    ('seen', '["source"]'), ('rejected', '["source", "reason"]'), ('skipped', '["source", "reason"]'),
    ('parts', '["source", "outcome"]'), ('repaired', '["source"]'), ('resent', '["source"]'),
    ('lost', '["source", "reason"]'), ('resets', '["source", "reason"]'), ('spans', '["source"]'),
    ('spans_left_out', '["source", "reason"]'), ('traces', '["source", "outcome"]'),
    ('silent', '["source", "instrumentation"]'), ('feedback', '["source", "outcome"]'), ('of_canaries', '["source"]'),
    ('invalid_marks', '["source"]'), ('drawn', '["route"]'), ('assigned', '["judge"]'),
    ('judged', '["route", "judge"]'), ('unjudged', '["route", "judge", "reason"]'),
    ('unknown', '["quantity", "route", "judge", "reason"]'), ('stage', '["route", "judge", "stage"]'),
    ('fault', '["route", "judge", "fault"]'), ('rejudged', '["judge"]'),
    ('repeated', '["judge", "version", "quantity"]'), ('repeated_alike', '["judge", "version", "quantity"]'),
    ('known_bad', '["judge", "version"]'), ('fooled', '["judge", "version"]'), ('padded', '["judge", "version"]'),
    ('padding_preferred', '["judge", "version"]'), ('redacted', '["secret"]'), ('empty_retrievals', '["route"]'),
    ('abstentions', '["route"]'), ('duplicate_contexts', '["route"]'), ('ranked', '["route"]'),
    ('unranked', '["route", "reason"]'), ('ranking_score', '["route", "metric", "k"]'),
    ('n', '["quantity", "route", "judge"]'), ('w', '["quantity", "route", "judge"]'),
    ('wx', '["quantity", "route", "judge"]'), ('w2', '["quantity", "route", "judge"]'),
    ('w2x', '["quantity", "route", "judge"]'), ('w2x2', '["quantity", "route", "judge"]'),
    ('segment_w', '["quantity", "segment", "value", "route", "judge"]'),
    ('segment_wx', '["quantity", "segment", "value", "route", "judge"]'),
    ('segment_w2', '["quantity", "segment", "value", "route", "judge"]'),
    ('segment_w2x', '["quantity", "segment", "value", "route", "judge"]'),
    ('segment_w2x2', '["quantity", "segment", "value", "route", "judge"]'),
    ('segment_judged', '["segment", "value", "route", "judge"]'),
    ('segment_unjudged', '["segment", "value", "route", "judge"]'),
    ('segment_left_out', '["segment", "route", "judge"]'), ('score', '["quantity", "route", "judge", "bucket"]'),
    ('contexts', '["route", "bucket"]'), ('top_score', '["route", "bucket"]'),
    ('answer_chars', '["route", "bucket"]'), ('question_strangeness', '["route", "bucket"]'),
    ('canary_runs', '["suite"]'), ('canary_failures', '["suite", "reason"]'),
    ('canary_seconds', '["suite", "bucket"]'), ('drift_alarms', '["quantity", "route"]')
)
UPDATE tallies SET label_names = (SELECT known.label_names FROM known WHERE known.name = tallies.name);
