-- Searches that read 100,000 answers are answered by indices; raw replies of LLM judges.

-- An answer by its time, so that rows which are read in the order of time are near each other.
CREATE INDEX verdicts_answer ON verdicts (at, key, judge, stage);

-- Scores that are not the best one, the worst first. Those of a damaged verdict are left out.
CREATE TABLE flaws (
    name TEXT NOT NULL,             -- quantity
    rank REAL NOT NULL,             -- the score; where low is good, its negative
    at   REAL NOT NULL,
    seq  INTEGER NOT NULL,          -- of the verdict
    PRIMARY KEY (name, rank, at DESC, seq DESC)
) WITHOUT ROWID;
INSERT INTO flaws
SELECT score.key, CASE WHEN score.key IN ('contradiction', 'top_ranked_ignored') THEN -score.value ELSE score.value END, v.at, v.seq
FROM verdicts AS v, json_each(CASE WHEN json_valid(scores) THEN scores ELSE '{}' END) AS score
WHERE score.type IN ('integer', 'real') AND score.value <> (score.key NOT IN ('contradiction', 'top_ranked_ignored'));

-- What an LLM judge replied, as text.
CREATE TABLE replies (
    seq  INTEGER PRIMARY KEY,       -- of the verdict
    key  TEXT NOT NULL,             -- of the sample
    body BLOB NOT NULL              -- JSON, zlib
);

CREATE TRIGGER verdict_added AFTER INSERT ON verdicts WHEN json_valid(NEW.scores)
BEGIN
    INSERT OR IGNORE INTO flaws
    SELECT score.key, CASE WHEN score.key IN ('contradiction', 'top_ranked_ignored') THEN -score.value ELSE score.value END, NEW.at, NEW.seq
    FROM json_each(NEW.scores) AS score
    WHERE score.type IN ('integer', 'real') AND score.value <> (score.key NOT IN ('contradiction', 'top_ranked_ignored'));
END;

CREATE TRIGGER verdict_deleted AFTER DELETE ON verdicts
BEGIN
    DELETE FROM replies WHERE seq = OLD.seq;
    DELETE FROM flaws WHERE (name, rank, at, seq) IN (
        SELECT score.key, CASE WHEN score.key IN ('contradiction', 'top_ranked_ignored') THEN -score.value ELSE score.value END, OLD.at, OLD.seq
        FROM json_each(CASE WHEN json_valid(OLD.scores) THEN OLD.scores ELSE '{}' END) AS score
        WHERE score.type IN ('integer', 'real')
    );
END;
