"""What the command `sumrate-lab` refuses in words instead of with a traceback."""

USAGE = 2
"""Exit status when what was asked for does not exist or is wrong."""


class RefusedError(ValueError):
    """What was asked for is wrong; the message says where, what, and what would be right."""
