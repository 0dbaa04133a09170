"""What the local judge reads with beside words: a small model over (claim, evidence) pairs, and what its numbers mean.

`artefact` is what training ships, checked; `fusion` turns the words' figure and the model's into probabilities (pure);
`session` runs the model: the only place that knows onnxruntime, tokenizers and numpy; `second` decides what is read.
"""
