-- Schema 4. Parts that wait for the rest of a sample, and ids of records that were received.

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
