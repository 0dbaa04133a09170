-- What answers have in common: see statistics/causes/traits.py. Workers of earlier schemas may run beside: they write none.

CREATE TABLE traits (
    key  text COLLATE "C" PRIMARY KEY,  -- of the sample
    body bytea NOT NULL                 -- JSON, zlib
);
ALTER TABLE traits ALTER COLUMN body SET STORAGE EXTERNAL;
