"""Experiments on real stacks: private namespaces, emulated links, one endpoint per scheme."""
