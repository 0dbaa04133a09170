"""Redaction of PII (personally identifiable information) and secrets."""
