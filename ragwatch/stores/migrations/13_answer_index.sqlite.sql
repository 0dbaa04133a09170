-- Index of judged answers for searches: see search_index.py. Answers of before are added by retention.

CREATE TABLE answer_index (
    id    INTEGER PRIMARY KEY,      -- grows with the time of the answer in seconds
    key   TEXT NOT NULL UNIQUE,     -- of the sample
    at    REAL NOT NULL,            -- when it was answered, seconds since the epoch
    terms BLOB NOT NULL,            -- its terms, 8 bytes each: see stores/search_index.py
    words INTEGER NOT NULL          -- 1 if the words of its texts are in the table `words`, which sqlite_search.py makes
);

CREATE TABLE terms (
    term INTEGER NOT NULL,          -- digest of a value of metadata, or of the id of a context
    at   REAL NOT NULL,
    id   INTEGER NOT NULL,          -- in `answer_index`
    PRIMARY KEY (term, at, id)
) WITHOUT ROWID;
