"""Redaction of PII (personal data) and secrets."""
