-- Migrations 6 to 10 divide samples and verdicts into partitions by day, each step in a transaction of its own, so that no lock
-- is held for long. Here: one place for the keys of all samples, because no index spans partitions. Rows of workers of
-- earlier versions are registered by a trigger.
CREATE TABLE sample_keys (
    key  text COLLATE "C" PRIMARY KEY,
    part integer NOT NULL DEFAULT 0     -- of the sample: see migration 10
);
CREATE INDEX sample_keys_part ON sample_keys (part) WHERE part > 0;

CREATE FUNCTION register_sample() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO sample_keys (key) VALUES (NEW.key) ON CONFLICT DO NOTHING;
    IF FOUND THEN
        RETURN NEW;
    END IF;
    RETURN NULL;  -- it is stored already
END
$$;
CREATE TRIGGER register BEFORE INSERT ON samples FOR EACH ROW EXECUTE FUNCTION register_sample();
