CREATE SCHEMA IF NOT EXISTS VIEWS;
-- Read-only views for Grafana and other readers. They contain no texts. TABLES and VIEWS stand for the two schemas.

-- Ends of the 95 % interval of a weighted mean, as the recording rules for Prometheus compute it: Wilson's score interval
-- at the observed variance. The sums are those of weights w = 1 / probability and values x.
CREATE FUNCTION VIEWS.interval_of(w float8, wx float8, w2 float8, w2x float8, w2x2 float8, z float8)
RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN w > 0 THEN greatest(0, least(1,
        (mean + z * z / 2 * trial + z * sqrt(mean * (1 - mean) * trial + z * z / 4 * trial * trial))
        / (1 + z * z * trial))) END
    FROM (SELECT greatest(0, least(1, wx / nullif(w, 0))) AS mean) AS m,
    LATERAL (SELECT sqrt(greatest(w2x2 - 2 * mean * w2x + mean * mean * w2, 0)) / nullif(w, 0) AS error) AS e,
    LATERAL (SELECT CASE
        WHEN error > 1e-7 AND mean * (1 - mean) > 0 THEN error * error / (mean * (1 - mean)) ELSE w2 / nullif(w * w, 0)
    END AS trial) AS t
$$;
CREATE FUNCTION VIEWS.interval_low(w float8, wx float8, w2 float8, w2x float8, w2x2 float8)
RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    -- by symmetry: the upper end for 1 - x
    SELECT 1 - VIEWS.interval_of(w, w - wx, w2, w2 - w2x, w2 - 2 * w2x + w2x2, 1.959964)
$$;
CREATE FUNCTION VIEWS.interval_high(w float8, wx float8, w2 float8, w2x float8, w2x2 float8)
RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT VIEWS.interval_of(w, wx, w2, w2x, w2x2, 1.959964)
$$;

-- One row for each answer and judge. `epoch` is `at` in seconds since 1970, by which there is an index.
CREATE VIEW VIEWS.verdicts AS
SELECT seq, key, at AS epoch, to_timestamp(at) AS at, route, judge, version, probability, 1 / probability AS weight, outcome,
       reason, stage, fault, failing <> 0 AS failing, COLUMNS, trace_id
FROM TABLES.verdicts;

-- One row for each known score. `value` is what estimates average: the calibrated expectation where the judge gives one.
-- Left out are answers of a time of which retention has deleted the good ones, and readings by `ragwatch rejudge`.
CREATE VIEW VIEWS.scores AS
SELECT v.seq, v.at AS epoch, to_timestamp(v.at) AS at, v.route, v.judge, v.version, q.quantity, q.score, q.expected,
       coalesce(q.expected, q.score) AS value, 1 / v.probability AS weight
FROM TABLES.verdicts v CROSS JOIN LATERAL (
    VALUES QUANTITIES
    UNION ALL
    SELECT c.name, (v.scores ->> c.name)::float8, NULL
    FROM jsonb_array_elements_text(coalesce(v.scores -> 'criteria', '[]')) AS c(name)
) AS q(quantity, score, expected)
WHERE q.score IS NOT NULL
  AND NOT coalesce(v.scores @> '{"rejudged":true}', false)
  AND (v.at > coalesce((SELECT until FROM TABLES.pruned), '-Infinity') OR v.seq > (SELECT seq FROM TABLES.pruned));

-- Estimates by hour. Sums add up over hours and routes; a mean of several is sum(wx) / sum(w).
CREATE VIEW VIEWS.quality_hourly AS
SELECT *, wx / w AS mean, VIEWS.interval_low(w, wx, w2, w2x, w2x2) AS low,
       VIEWS.interval_high(w, wx, w2, w2x, w2x2) AS high
FROM (
    SELECT to_timestamp(floor(epoch / 3600) * 3600) AS hour, route, judge, version, quantity, count(*) AS n,
           sum(weight) AS w, sum(weight * value) AS wx, sum(weight * weight) AS w2,
           sum(weight * weight * value) AS w2x, sum(weight * weight * value * value) AS w2x2
    FROM VIEWS.scores GROUP BY 1, 2, 3, 4, 5
) AS sums;

-- Draws that are not judged yet.
CREATE VIEW VIEWS.pending AS
SELECT w.judge, s.route, count(*) AS draws, sum(1 / w.probability) AS weight, to_timestamp(min(w.since)) AS oldest
FROM TABLES.work w JOIN TABLES.samples s USING (key) GROUP BY 1, 2;

-- Calls of judges that cost money. What is not settled is the worst case that is reserved.
CREATE VIEW VIEWS.spending AS
SELECT judge, at AS epoch, to_timestamp(at) AS at, usd, tokens, settled FROM TABLES.spending;

-- What users say of answers, the last feedback on each.
CREATE VIEW VIEWS.feedback AS
SELECT f.seq, f.key, f.answered AS epoch, to_timestamp(f.answered) AS answered, to_timestamp(f.at) AS at, s.route, f.score
FROM TABLES.feedback f LEFT JOIN TABLES.samples s USING (key) WHERE f.score IS NOT NULL;

CREATE VIEW VIEWS.events AS
SELECT at AS epoch, to_timestamp(at) AS at, kind, detail FROM TABLES.events;

CREATE VIEW VIEWS.counters AS
SELECT name, labels::jsonb AS labels, sum(value) AS value FROM TABLES.tallies GROUP BY 1, 2;
