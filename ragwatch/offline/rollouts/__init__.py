"""The three stages that a variant passes before it goes live."""
