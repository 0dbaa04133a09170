-- Queue times, judge costs, message batches; runs, labels by people, saved state and claims.

ALTER TABLE work ADD COLUMN since REAL NOT NULL DEFAULT 0.0;  -- since when the draw is pending for that judge
ALTER TABLE work ADD COLUMN batch INTEGER;                    -- the message batch that contains it; not leased meanwhile
ALTER TABLE work ADD COLUMN reservation INTEGER;              -- id in `spending`
UPDATE work SET since = COALESCE((SELECT at FROM samples WHERE samples.key = work.key), 0.0);
CREATE INDEX work_turn ON work (judge, seq);  -- without it, each lease sorts the whole queue
CREATE INDEX work_since ON work (since);
CREATE INDEX work_batch ON work (batch) WHERE batch IS NOT NULL;

-- Reservations and payments for judge calls. Ids are never reused.
CREATE TABLE spending (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    judge   TEXT NOT NULL,
    at      REAL NOT NULL,          -- when the call began, seconds since the epoch
    usd     REAL NOT NULL,
    tokens  INTEGER NOT NULL,
    settled INTEGER NOT NULL        -- 0 while it is the worst case, 1 when it is what was paid
);
CREATE INDEX spending_at ON spending (judge, at, usd, tokens);

CREATE TABLE batches (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    judge       TEXT NOT NULL,
    provider_id TEXT,               -- NULL while it is not known whether the provider has it
    prepared    REAL NOT NULL,
    seed        TEXT NOT NULL
);

-- Stages and faults are counted by judge from now on; earlier counts are attributed to the judge with most verdicts.
UPDATE tallies
SET labels = substr(labels, 1, length(labels) - length(json_extract(labels, '$[1]')) - 5) || ', ' || json_quote(COALESCE((
        SELECT json_extract(judged.labels, '$[1]')
        FROM tallies AS judged
        WHERE judged.name = 'judged' AND json_extract(judged.labels, '$[0]') = json_extract(tallies.labels, '$[0]')
        ORDER BY judged.value DESC
        LIMIT 1
    ), '')) || ', "' || json_extract(labels, '$[1]') || '"]'
WHERE name IN ('stage', 'fault') AND json_array_length(labels) = 2;

-- Runs of canary suites and anchor sets.
CREATE TABLE runs (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    kind    TEXT NOT NULL,          -- canary, anchor
    name    TEXT NOT NULL,
    at      REAL NOT NULL,
    failing INTEGER NOT NULL,       -- came out badly: outlives the others
    body    BLOB NOT NULL           -- JSON, zlib
);
CREATE INDEX runs_name ON runs (kind, name, at);
CREATE INDEX runs_failing ON runs (failing, at);

-- Labels by people: one for each annotator and sample.
CREATE TABLE labels (
    key       TEXT NOT NULL,        -- of the sample
    annotator TEXT NOT NULL,
    at        REAL NOT NULL,
    body      BLOB NOT NULL,        -- JSON, zlib
    PRIMARY KEY (key, annotator)
) WITHOUT ROWID;
CREATE INDEX labels_at ON labels (at);

-- State that loops need after a restart.
CREATE TABLE states (
    name TEXT PRIMARY KEY,
    body BLOB NOT NULL              -- JSON, zlib
) WITHOUT ROWID;

-- Exclusive claims, each held by one process at a time.
CREATE TABLE claims (
    name   TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    until  REAL NOT NULL
) WITHOUT ROWID;
