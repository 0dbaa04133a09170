"""The pages, and their JSON."""
