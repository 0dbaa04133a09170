-- Sums of scores and peaks of drift evidence by bucket of time, for charts; versions named by records.
SET LOCAL statement_timeout = 0;

-- Sums that estimates are computed from (model/estimate.py), incremented in the transaction that writes the scores.
CREATE TABLE trends (
    span    integer NOT NULL,                -- length of the bucket in seconds
    kind    text COLLATE "C" NOT NULL,       -- score, canary
    place   text COLLATE "C" NOT NULL,       -- route, suite
    start   bigint NOT NULL,                 -- of the bucket, seconds since the epoch
    name    text COLLATE "C" NOT NULL,       -- quantity, metric
    judge   text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,       -- of the judge
    n       bigint NOT NULL,
    w       double precision NOT NULL,
    wx      double precision NOT NULL,
    w2      double precision NOT NULL,
    w2x     double precision NOT NULL,
    w2x2    double precision NOT NULL,
    w3      double precision NOT NULL,
    w4      double precision NOT NULL,
    PRIMARY KEY (span, kind, place, start, name, judge, version)
) WITH (fillfactor = 70);

CREATE TABLE peaks (
    span      integer NOT NULL,
    kind      text COLLATE "C" NOT NULL,     -- drift, traffic_drift
    place     text COLLATE "C" NOT NULL,     -- route
    start     bigint NOT NULL,
    name      text COLLATE "C" NOT NULL,     -- quantity, signal
    value     double precision NOT NULL,     -- the highest evidence
    threshold double precision,
    PRIMARY KEY (span, kind, place, start, name)
) WITH (fillfactor = 70);

-- Values of the metadata keys that name versions, as digests.
CREATE TABLE known_versions (
    field  text COLLATE "C" NOT NULL,
    digest bytea NOT NULL,
    at     double precision NOT NULL,        -- when it was stored, seconds since the epoch
    PRIMARY KEY (field, digest)
);

-- Sums of the scores that are stored, except of times from which retention has deleted some.
WITH spans (span, since) AS (
    VALUES (3600, '-Infinity'::float8), (300, (SELECT MAX(at) FROM verdicts) - 172800)
), scored AS (
    SELECT
        span, route, floor(v.at / span)::bigint * span AS start, score.key AS name, judge, version, 1 / probability AS w,
        COALESCE(scores -> 'expected' -> score.key, score.value)::float8 AS x
    FROM spans, verdicts AS v, jsonb_each(CASE WHEN jsonb_typeof(scores) = 'object' THEN scores ELSE '{}' END) AS score
    WHERE v.at >= since AND probability > 0 AND jsonb_typeof(score.value) = 'number'
        AND v.at > COALESCE((SELECT until FROM pruned), '-Infinity')
)
INSERT INTO trends
SELECT
    span, 'score', route, start, name, judge, version,
    COUNT(*), SUM(w), SUM(w * x), SUM(w * w), SUM(w * w * x), SUM(w * w * x * x), SUM(w * w * w), SUM(w * w * w * w)
FROM scored
GROUP BY span, route, start, name, judge, version;
