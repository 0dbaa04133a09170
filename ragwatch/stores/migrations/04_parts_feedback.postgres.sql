-- Keys are compared as bytes (COLLATE "C").
-- Texts are compressed (and encrypted) before they are stored, so PostgreSQL does not try again (STORAGE EXTERNAL).

-- Counters. Each is incremented in the transaction that writes what it counts; a worker writes to one of a few slots,
-- so that workers wait for each other rarely. The value of a counter is the sum over its slots, in their order.
CREATE TABLE tallies (
    name   text COLLATE "C" NOT NULL,
    labels text COLLATE "C" NOT NULL,   -- JSON list, in the order of statistics/tally.py
    slot   smallint NOT NULL,
    value  double precision NOT NULL CHECK (value > '-Infinity' AND value < 'Infinity'),
    PRIMARY KEY (name, labels, slot)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200);

CREATE TABLE cursors (
    source text COLLATE "C" NOT NULL,
    stream text COLLATE "C" NOT NULL,
    cursor text NOT NULL,               -- opaque to the store
    PRIMARY KEY (source, stream)
) WITH (fillfactor = 50);

-- Draws, redacted. The key is a hash of source and sample id: admitting twice is a no-op.
CREATE TABLE samples (
    key    text COLLATE "C" PRIMARY KEY,
    source text NOT NULL,
    route  text NOT NULL,
    at     double precision NOT NULL,   -- when it was answered, seconds since the epoch
    body   bytea NOT NULL               -- canonical JSON, zlib; one zero byte once its text is deleted
);
ALTER TABLE samples ALTER COLUMN body SET STORAGE EXTERNAL;

-- The queue: one row for each draw and judge that has not been settled.
CREATE TABLE work (
    seq          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key          text COLLATE "C" NOT NULL,
    judge        text COLLATE "C" NOT NULL,
    probability  double precision NOT NULL,
    since        double precision NOT NULL,  -- since when the draw is pending for that judge
    batch        bigint,                     -- the message batch that contains it; not leased meanwhile
    reservation  bigint,                     -- id in `spending`
    holder       text,                       -- the worker that has leased or postponed it
    leased_until double precision NOT NULL DEFAULT '-Infinity',
    UNIQUE (judge, key)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
CREATE INDEX work_turn ON work (judge, seq) WHERE batch IS NULL;
CREATE INDEX work_key ON work (key);
CREATE INDEX work_since ON work (since);
CREATE INDEX work_batch ON work (batch) WHERE batch IS NOT NULL;

-- Sequence numbers are assigned while the lock of sequences is held, so that readers see them in order: see engine.py.
CREATE TABLE verdicts (
    seq         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key         text COLLATE "C" NOT NULL,
    judge       text COLLATE "C" NOT NULL,
    version     text NOT NULL,
    at          double precision NOT NULL,
    route       text NOT NULL,
    probability double precision NOT NULL,
    outcome     text NOT NULL,          -- judged, unjudged
    reason      text,
    stage       text,
    fault       text,
    failing     smallint NOT NULL,      -- unjudged, or names a faulty stage: outlives the others
    scores      jsonb,                  -- object, NULL when unjudged
    trace_id    text,
    line        bytea NOT NULL,         -- the verdict line of the contract, zlib
    UNIQUE (key, judge)
);
ALTER TABLE verdicts ALTER COLUMN line SET STORAGE EXTERNAL;
CREATE INDEX verdicts_at ON verdicts (at, seq);
CREATE INDEX verdicts_failing ON verdicts (failing, at);

CREATE TABLE events (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at     double precision NOT NULL,
    kind   text NOT NULL,
    detail text NOT NULL
);
CREATE INDEX events_at ON events (at);

-- Reservations and payments for judge calls. Ids are never reused.
CREATE TABLE spending (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    judge   text COLLATE "C" NOT NULL,
    at      double precision NOT NULL,  -- when the call began, seconds since the epoch
    usd     double precision NOT NULL CHECK (usd > '-Infinity' AND usd < 'Infinity'),
    tokens  bigint NOT NULL,
    settled boolean NOT NULL            -- false while it is the worst case, true when it is what was paid
);
CREATE INDEX spending_at ON spending (judge, at) INCLUDE (usd, tokens);

CREATE TABLE batches (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    judge       text COLLATE "C" NOT NULL,
    provider_id text,                   -- NULL while it is not known whether the provider has it
    prepared    double precision NOT NULL,
    seed        text NOT NULL
);

-- Runs of canary suites and anchor sets.
CREATE TABLE runs (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind    text COLLATE "C" NOT NULL,
    name    text COLLATE "C" NOT NULL,
    at      double precision NOT NULL,
    failing smallint NOT NULL,          -- came out badly: outlives the others
    body    bytea NOT NULL              -- JSON, zlib
);
CREATE INDEX runs_name ON runs (kind, name, at);
CREATE INDEX runs_failing ON runs (failing, at);

-- Labels by people: one for each annotator and sample.
CREATE TABLE labels (
    key       text COLLATE "C" NOT NULL,
    annotator text COLLATE "C" NOT NULL,
    at        double precision NOT NULL,
    body      bytea NOT NULL,           -- JSON, zlib
    PRIMARY KEY (key, annotator)
);
CREATE INDEX labels_at ON labels (at, key, annotator);

-- State that loops need after a restart.
CREATE TABLE states (
    name text COLLATE "C" PRIMARY KEY,
    body bytea NOT NULL                 -- JSON, zlib
) WITH (fillfactor = 50);

-- Exclusive claims, each held by one worker at a time.
CREATE TABLE claims (
    name   text COLLATE "C" PRIMARY KEY,
    holder text NOT NULL,
    until  double precision NOT NULL
) WITH (fillfactor = 50);

-- Up to when, and to which sequence number, retention has deleted verdicts: at most one row.
CREATE TABLE pruned (
    one   boolean PRIMARY KEY DEFAULT true CHECK (one),
    until double precision NOT NULL,
    seq   bigint NOT NULL
);

CREATE TABLE parts (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source     text COLLATE "C" NOT NULL,
    part_group text COLLATE "C" NOT NULL,  -- what the parts have in common: a trace id, a request id
    name       text COLLATE "C" NOT NULL,  -- of the part within its group: a span id
    at         double precision NOT NULL,  -- when it arrived, seconds since the epoch
    body       bytea NOT NULL,             -- zlib
    UNIQUE (source, part_group, name)
);

-- Records of sources to which clients send again what was not acknowledged.
CREATE TABLE received (
    source text COLLATE "C" NOT NULL,
    digest bytea NOT NULL,              -- of the id
    at     double precision NOT NULL,
    PRIMARY KEY (source, digest)
);
CREATE INDEX received_at ON received (at);

-- What users say of answers: the last feedback on each.
CREATE TABLE feedback (
    seq      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key      text COLLATE "C" NOT NULL UNIQUE,
    at       double precision NOT NULL,  -- when it was given, seconds since the epoch
    score    double precision,           -- in [0, 1]; NULL if it was erased, so that none is accepted again
    answered double precision NOT NULL   -- time of the answer
);
CREATE INDEX feedback_answered ON feedback (answered);

-- Feedback that was received before its answer.
CREATE TABLE early_feedback (
    key      text COLLATE "C" PRIMARY KEY,  -- of the sample that it may be about
    name     text COLLATE "C" NOT NULL,     -- the same for all samples that one feedback may be about
    source   text NOT NULL,
    at       double precision NOT NULL,
    score    double precision NOT NULL,
    received double precision NOT NULL
);
CREATE INDEX early_feedback_name ON early_feedback (name);
