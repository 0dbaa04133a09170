-- The keys of the samples that are stored already. Locks nothing that others write.
SET LOCAL statement_timeout = 0;
INSERT INTO sample_keys (key) SELECT key FROM samples ON CONFLICT DO NOTHING;
