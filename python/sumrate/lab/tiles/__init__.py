"""Tiles of a 360-degree video through a transport under test: a sender that plans, a viewer."""
