"""What `make dist` writes."""
