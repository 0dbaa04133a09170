"""Calling: how a model is asked and what is done when it does not answer. What is asked is a matter of `asking`."""
