-- Parts that wait for the rest of a sample, ids of records that were received, feedback of users.

CREATE TABLE parts (
    source     TEXT NOT NULL,
    part_group TEXT NOT NULL,       -- what the parts have in common: a trace id, a request id
    name       TEXT NOT NULL,       -- of the part within its group: a span id
    at         REAL NOT NULL,       -- when it arrived, seconds since the epoch
    body       BLOB NOT NULL        -- zlib
);
CREATE UNIQUE INDEX parts_name ON parts (source, part_group, name);

-- Records of sources to which clients send again what was not acknowledged.
CREATE TABLE received (
    source TEXT NOT NULL,
    digest BLOB NOT NULL,           -- of the id
    at     REAL NOT NULL
);
CREATE UNIQUE INDEX received_digest ON received (source, digest);

-- What users say of answers: the last feedback on each.
CREATE TABLE feedback (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    key      TEXT NOT NULL UNIQUE,  -- of the sample
    at       REAL NOT NULL,         -- when it was given, seconds since the epoch
    score    REAL,                  -- in [0, 1]; NULL if it was erased, so that none is accepted again
    answered REAL NOT NULL          -- time of the answer
);
CREATE INDEX feedback_answered ON feedback (answered);

-- Feedback that was received before its answer.
CREATE TABLE early_feedback (
    key      TEXT NOT NULL,         -- of the sample that it may be about
    name     TEXT NOT NULL,         -- the same for all samples that one feedback may be about
    source   TEXT NOT NULL,
    at       REAL NOT NULL,
    score    REAL NOT NULL,
    received REAL NOT NULL,
    PRIMARY KEY (key)
) WITHOUT ROWID;
