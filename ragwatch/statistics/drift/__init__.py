"""Drift detection: detectors with a stated false alarm rate, and confidence sequences."""
