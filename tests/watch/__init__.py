"""What a running Sumrate shows: metrics, the status page, the event log."""
