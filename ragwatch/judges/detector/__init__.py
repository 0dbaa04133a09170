"""Kind `detector`: a public hallucination or NLI model from a local folder, fused with the lexical judge."""
