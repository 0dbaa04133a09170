"""Estimators of a mean or a rate, with intervals: from sums of scores, weights and labels to an Estimate."""
