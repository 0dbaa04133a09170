"""Kind `lexical`: the embedded judge. It compares words, and needs no model, network or key."""
