-- Raw replies of LLM judges. Workers of earlier schemas write none; texts that they delete go by the trigger of
-- migration 13, and what they drop by the reference.
CREATE TABLE replies (
    seq  bigint PRIMARY KEY,            -- of the verdict
    key  text COLLATE "C" NOT NULL REFERENCES sample_keys (key) ON DELETE CASCADE,
    body bytea NOT NULL                 -- JSON, zlib
);
ALTER TABLE replies ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX replies_key ON replies (key);

CREATE OR REPLACE FUNCTION drop_index_of_text() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE answer_index SET terms = '{}', words = NULL WHERE key = NEW.key;
    DELETE FROM replies WHERE key = NEW.key;
    RETURN NULL;
END
$$;
