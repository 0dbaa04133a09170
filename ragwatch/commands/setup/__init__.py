"""`ragwatch init`: a configuration for the log of a service."""
