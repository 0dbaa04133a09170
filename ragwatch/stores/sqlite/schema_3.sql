-- Schema 3. Judges that cost money and time, canaries, and people: since when a draw waits, what calls cost, what is out
-- with a provider; what is kept beside samples and verdicts.

ALTER TABLE work ADD COLUMN since REAL NOT NULL DEFAULT 0.0;  -- when the draw was given to that judge
ALTER TABLE work ADD COLUMN batch INTEGER;                    -- the message batch that it is in; nobody leases it then
ALTER TABLE work ADD COLUMN reservation INTEGER;              -- the money set aside for it there
UPDATE work SET since = COALESCE((SELECT at FROM samples WHERE samples.key = work.key), 0.0);
CREATE INDEX work_turn ON work (judge, seq);  -- with ten thousand waiting, a lease sorted all of them
CREATE INDEX work_since ON work (since);
CREATE INDEX work_batch ON work (batch) WHERE batch IS NOT NULL;

-- What was set aside for a call, or paid for it. Numbers are never used twice.
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

-- Stages and faults are counted by judge from now on; what was counted before belongs to the judge that read most there.
UPDATE tallies
SET labels = substr(labels, 1, length(labels) - length(json_extract(labels, '$[1]')) - 5) || ', ' || json_quote(COALESCE((
        SELECT json_extract(judged.labels, '$[1]')
        FROM tallies AS judged
        WHERE judged.name = 'judged' AND json_extract(judged.labels, '$[0]') = json_extract(tallies.labels, '$[0]')
        ORDER BY judged.value DESC
        LIMIT 1
    ), '')) || ', "' || json_extract(labels, '$[1]') || '"]'
WHERE name IN ('stage', 'fault') AND json_array_length(labels) = 2;

-- Suites of canaries and sets of anchors, each time they were tried.
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

-- What people said of samples: one word a person and sample.
CREATE TABLE labels (
    key       TEXT NOT NULL,        -- of the sample
    annotator TEXT NOT NULL,
    at        REAL NOT NULL,
    body      BLOB NOT NULL,        -- JSON, zlib
    PRIMARY KEY (key, annotator)
) WITHOUT ROWID;
CREATE INDEX labels_at ON labels (at);

-- What a loop must know after a restart.
CREATE TABLE states (
    name TEXT PRIMARY KEY,
    body BLOB NOT NULL              -- JSON, zlib
) WITHOUT ROWID;

-- Rights that one process of a fleet has at a time.
CREATE TABLE claims (
    name   TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    until  REAL NOT NULL
) WITHOUT ROWID;
