"""What commands share: their options, output, and an event loop that a signal ends."""
