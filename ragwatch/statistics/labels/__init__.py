"""Labels: judgements of people on answers, which answers they label, and the agreement of judges with people."""
