-- Counters. Each is incremented in the transaction that writes what it counts.
CREATE TABLE tallies (
    name   TEXT NOT NULL,
    labels TEXT NOT NULL,           -- JSON list, in the order of statistics/tally.py
    value  REAL NOT NULL,
    PRIMARY KEY (name, labels)
) WITHOUT ROWID;

-- Cursor of each stream of each source.
CREATE TABLE cursors (
    source TEXT NOT NULL,
    stream TEXT NOT NULL,
    cursor TEXT NOT NULL,           -- opaque to the store
    PRIMARY KEY (source, stream)
) WITHOUT ROWID;

-- Draws, redacted. The key is a hash of source and sample id: admitting twice is a no-op.
CREATE TABLE samples (
    key    TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    route  TEXT NOT NULL,
    at     REAL NOT NULL,           -- when it was answered, seconds since the epoch
    body   BLOB NOT NULL            -- canonical JSON, zlib
) WITHOUT ROWID;

-- The queue is a table: one row for each draw and judge that has not been settled.
CREATE TABLE work (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    key         TEXT NOT NULL,
    judge       TEXT NOT NULL,
    probability REAL NOT NULL,
    UNIQUE (judge, key)
);

CREATE TABLE verdicts (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    key         TEXT NOT NULL,
    judge       TEXT NOT NULL,
    version     TEXT NOT NULL,
    at          REAL NOT NULL,
    route       TEXT NOT NULL,
    probability REAL NOT NULL,
    outcome     TEXT NOT NULL,      -- judged, unjudged
    reason      TEXT,
    stage       TEXT,
    fault       TEXT,
    failing     INTEGER NOT NULL,   -- unjudged, or names a faulty stage: outlives the others
    scores      TEXT,               -- JSON object, NULL when unjudged
    trace_id    TEXT,
    line        BLOB NOT NULL,      -- the verdict line of the contract, zlib
    UNIQUE (key, judge)
);
CREATE INDEX verdicts_at ON verdicts (at);
CREATE INDEX verdicts_failing ON verdicts (failing, at);

CREATE TABLE events (
    at     REAL NOT NULL,
    kind   TEXT NOT NULL,
    detail TEXT NOT NULL
);
CREATE INDEX events_at ON events (at);
