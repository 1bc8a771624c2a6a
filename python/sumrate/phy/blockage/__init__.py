"""Blockage: TR 38.901's models A and B, and a random process of passing people."""
