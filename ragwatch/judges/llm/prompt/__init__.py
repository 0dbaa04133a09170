"""What a model is asked about one sample, and what its reply means. Pure: text in, values out.

`begin(sample, ...)` gives a `Reading`: the prompts to send, a check for each reply, and in the end the Evidence.
Claims and sentences are those of `judges/lexical`, so that the embedded judge and a model read the same rows.
"""
