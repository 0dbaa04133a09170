"""`ragwatch check`: a test of the configuration and what it refers to."""
