"""Core: pure values and arithmetic. No I/O, no clock, standard library only."""
