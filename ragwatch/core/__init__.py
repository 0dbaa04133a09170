"""The floor: pure values and arithmetic. Values in, values out; no I/O, no clock, standard library only."""
