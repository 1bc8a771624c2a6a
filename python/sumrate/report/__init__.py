"""Self-contained report pages. The only place that may import a plotting library."""
