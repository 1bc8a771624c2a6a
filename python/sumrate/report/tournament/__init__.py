"""The scheduler tournament: `fbdt-tournament`'s tables as figure, standings and comparisons."""
