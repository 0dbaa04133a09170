-- Index of judged answers for searches: see search_index.py. It is empty: each worker adds those of before, and those
-- of workers of earlier schemas beside it, after its start. What these delete goes by the trigger and by the reference.

-- Tables are locked in the order in which an insertion locks them: samples, then keys.
CREATE FUNCTION drop_index_of_text() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE answer_index SET terms = '{}', words = NULL WHERE key = NEW.key;
    RETURN NULL;
END
$$;
CREATE TRIGGER drop_index_of_text AFTER UPDATE OF body ON samples FOR EACH ROW
    WHEN (NEW.body = '\x00') EXECUTE FUNCTION drop_index_of_text();

CREATE TABLE answer_index (
    key   text COLLATE "C" PRIMARY KEY REFERENCES sample_keys (key) ON DELETE CASCADE,
    terms bigint[] NOT NULL,            -- digests of metadata and of ids of contexts: see stores/search_index.py
    words tsvector                      -- of question and answer; NULL if they are not indexed
);
CREATE INDEX answer_index_terms ON answer_index USING gin (terms);
CREATE INDEX answer_index_words ON answer_index USING gin (words) WHERE words IS NOT NULL;
