-- Sums of scores and peaks of drift evidence by bucket of time, for charts; versions named by records.

-- Sums that estimates are computed from (model/estimate.py), incremented in the transaction that writes the scores.
CREATE TABLE trends (
    span    INTEGER NOT NULL,       -- length of the bucket in seconds
    kind    TEXT NOT NULL,          -- score, canary
    place   TEXT NOT NULL,          -- route, suite
    start   INTEGER NOT NULL,       -- of the bucket, seconds since the epoch
    name    TEXT NOT NULL,          -- quantity, metric
    judge   TEXT NOT NULL,
    version TEXT NOT NULL,          -- of the judge
    n       INTEGER NOT NULL,
    w       REAL NOT NULL,
    wx      REAL NOT NULL,
    w2      REAL NOT NULL,
    w2x     REAL NOT NULL,
    w2x2    REAL NOT NULL,
    w3      REAL NOT NULL,
    w4      REAL NOT NULL,
    PRIMARY KEY (span, kind, place, start, name, judge, version)
) WITHOUT ROWID;

CREATE TABLE peaks (
    span      INTEGER NOT NULL,
    kind      TEXT NOT NULL,        -- drift, traffic_drift
    place     TEXT NOT NULL,        -- route
    start     INTEGER NOT NULL,
    name      TEXT NOT NULL,        -- quantity, signal
    value     REAL NOT NULL,        -- the highest evidence
    threshold REAL,
    PRIMARY KEY (span, kind, place, start, name)
) WITHOUT ROWID;

-- Values of the metadata keys that name versions, as digests.
CREATE TABLE known_versions (
    field  TEXT NOT NULL,
    digest BLOB NOT NULL,
    at     REAL NOT NULL,           -- when it was stored, seconds since the epoch
    PRIMARY KEY (field, digest)
) WITHOUT ROWID;

-- Sums of the scores that are stored, except of times from which retention has deleted some.
WITH spans (span, since) AS (
    VALUES (3600, -9e999), (300, (SELECT MAX(at) FROM verdicts) - 172800)
), scored AS (
    SELECT
        span, route, CAST(v.at / span AS INTEGER) * span AS start, score.key AS name, judge, version, 1.0 / probability AS w,
        COALESCE(json_extract(scores, '$.expected.' || score.key), score.value) AS x
    FROM spans, verdicts AS v, json_each(CASE WHEN json_valid(scores) THEN scores ELSE '{}' END) AS score
    WHERE v.at >= since AND probability > 0 AND score.type IN ('integer', 'real')
        AND v.at > COALESCE((SELECT json_extract(body, '$.until') FROM states WHERE name = 'retention'), -9e999)
)
INSERT INTO trends
SELECT
    span, 'score', route, start, name, judge, version,
    COUNT(*), SUM(w), SUM(w * x), SUM(w * w), SUM(w * w * x), SUM(w * w * x * x), SUM(w * w * w), SUM(w * w * w * w)
FROM scored
GROUP BY span, route, start, name, judge, version;
