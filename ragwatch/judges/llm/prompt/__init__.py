"""Builds the prompts for one sample, and parses the replies to Evidence. Pure: it makes no calls.

`start_reading(sample, ...)` returns a `Reading`: the prompts to send, a check for each reply, and the Evidence in the
end. It uses the claims and sentences of `judges/claims`, so that all judges read the same claims.
"""
