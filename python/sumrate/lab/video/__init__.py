"""A progressive download through a transport under test, into a player with a circular buffer."""
