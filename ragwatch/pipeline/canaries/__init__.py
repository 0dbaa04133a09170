"""The loop that runs canaries on a schedule, and judges the answers of the service to them."""
