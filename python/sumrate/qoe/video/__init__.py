"""Progressive video: what a real encode's GOPs weigh, and a player with a circular buffer."""
