"""What a model is asked about one sample, and what its reply means. Pure: text in, values out.

`begin(sample, ...)` gives an `Inquiry`: the asks to be made, a check for each reply, and in the end the Evidence.
Units are our own (`judges/reading/claims`), so that the embedded judge and a model read the same rows and columns.
"""
