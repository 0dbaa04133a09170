-- Samples are stored in insertion order, and assignments are counted by judge.

-- Sorted by key (a hash), pages were two thirds full, and deleting the oldest left free space in all of them.
CREATE TABLE samples_2 (
    key    TEXT NOT NULL UNIQUE,
    source TEXT NOT NULL,
    route  TEXT NOT NULL,
    at     REAL NOT NULL,           -- when it was answered, seconds since the epoch
    body   BLOB NOT NULL            -- canonical JSON, zlib
);
INSERT INTO samples_2 SELECT key, source, route, at, body FROM samples ORDER BY at;
DROP TABLE samples;
ALTER TABLE samples_2 RENAME TO samples;

-- Invariant: for each judge, assigned = judged + unjudged + pending.
INSERT OR REPLACE INTO tallies
SELECT 'assigned', json_array(judge), SUM(draws)
FROM (
    SELECT json_extract(labels, '$[1]') AS judge, value AS draws FROM tallies WHERE name IN ('judged', 'unjudged')
    UNION ALL
    SELECT judge, 1.0 FROM work
)
GROUP BY judge;
