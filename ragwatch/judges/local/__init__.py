"""Kind `local`: the embedded judge with a cross-encoder. It needs no key and no network."""
