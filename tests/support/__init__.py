"""Support: what tests share."""
