-- Proves that all rows are in partition 0, so that nothing is read under a lock later. Others go on writing.
SET LOCAL statement_timeout = 0;
ALTER TABLE samples VALIDATE CONSTRAINT samples_part;
ALTER TABLE verdicts VALIDATE CONSTRAINT verdicts_part;
