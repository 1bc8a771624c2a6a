"""Blockage: TR 38.901's models A and B, and people who come and go."""
