-- Samples and verdicts are partitioned by `part`: 0 holds what was stored before and what earlier versions store,
-- -1 what outlives its day or belongs to none, and every other number is a day since 1970 (UTC) of the answer. Partitions
-- of days are made and dropped by partitions.py, each with its indexes.
ALTER TABLE samples RENAME TO samples_0;
CREATE TABLE samples (LIKE samples_0 INCLUDING DEFAULTS INCLUDING STORAGE) PARTITION BY LIST (part);
ALTER TABLE samples ATTACH PARTITION samples_0 FOR VALUES IN (0);
CREATE TABLE samples_rest PARTITION OF samples FOR VALUES IN (-1);
CREATE UNIQUE INDEX ON samples_rest (key);

ALTER TABLE verdicts RENAME TO verdicts_0;
CREATE SEQUENCE verdict_numbers;
SELECT setval('verdict_numbers', last_value, is_called) FROM verdicts_seq_seq;
ALTER TABLE verdicts_0 ALTER COLUMN seq DROP IDENTITY;
CREATE TABLE verdicts (LIKE verdicts_0 INCLUDING DEFAULTS INCLUDING STORAGE) PARTITION BY LIST (part);
ALTER TABLE verdicts ALTER COLUMN seq SET DEFAULT nextval('verdict_numbers');
ALTER SEQUENCE verdict_numbers OWNED BY verdicts.seq;
ALTER TABLE verdicts ATTACH PARTITION verdicts_0 FOR VALUES IN (0);
CREATE TABLE verdicts_rest PARTITION OF verdicts FOR VALUES IN (-1);
CREATE UNIQUE INDEX ON verdicts_rest (key, judge);
CREATE UNIQUE INDEX ON verdicts_rest (seq);
CREATE INDEX ON verdicts_rest (at, seq);
CREATE INDEX ON verdicts_rest (failing, at);
