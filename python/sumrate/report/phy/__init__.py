"""Figures of the 60 GHz physical layer and of link traces."""
