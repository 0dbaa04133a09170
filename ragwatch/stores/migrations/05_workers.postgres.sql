-- One worker leads, and each counts under a number of its own.

-- The worker that leads. Its transactions lock the row and compare the number of the term: see postgres_store.py.
CREATE TABLE leader (
    one    boolean PRIMARY KEY DEFAULT true CHECK (one),
    holder text NOT NULL,
    term   bigint NOT NULL,              -- grows with every change of the leader
    until  timestamptz NOT NULL          -- by the clock of the server
) WITH (fillfactor = 50);

-- Numbers under which workers count. Those up to 15 belong to no single worker: commands, and workers of schema 1.
CREATE TABLE workers (
    slot integer GENERATED ALWAYS AS IDENTITY (START WITH 16) PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    seen timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);
ALTER TABLE tallies ALTER COLUMN slot TYPE integer;
CREATE INDEX tallies_slot ON tallies (slot);
