"""Sends scores back over OTLP, to the backend that has the traces of the judged answers."""
