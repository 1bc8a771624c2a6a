"""360-degree video in tiles: real encodes at several qualities, a head that moves, its viewport."""
