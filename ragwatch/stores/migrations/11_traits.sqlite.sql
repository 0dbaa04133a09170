-- What answers have in common: see statistics/causes/traits.py.

CREATE TABLE traits (
    key  TEXT NOT NULL UNIQUE,      -- of the sample
    body BLOB NOT NULL              -- JSON, zlib
);
