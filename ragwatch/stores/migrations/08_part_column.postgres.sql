-- The column that says in which partition a row is; existing rows are in number 0.
ALTER TABLE samples ADD COLUMN part integer NOT NULL DEFAULT 0, ADD CONSTRAINT samples_part CHECK (part = 0) NOT VALID;
ALTER TABLE verdicts ADD COLUMN part integer NOT NULL DEFAULT 0, ADD CONSTRAINT verdicts_part CHECK (part = 0) NOT VALID;
