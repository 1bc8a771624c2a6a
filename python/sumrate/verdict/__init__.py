"""Metrics, verdicts and the words for both: what the lab decides and the report shows."""
