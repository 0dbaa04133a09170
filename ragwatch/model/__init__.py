"""Tables of which every other package is derived: a row for each quantity, stage, fault and reason."""
