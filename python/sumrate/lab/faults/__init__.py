"""Real faults on real sockets: what is made to fail, what is measured meanwhile, and a soak."""
