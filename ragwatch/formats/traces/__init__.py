"""Assembles one record for each RAG request in the spans of a trace, whether they came over OTLP or from an export."""
