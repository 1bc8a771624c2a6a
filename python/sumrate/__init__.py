"""Sumrate's Python half: experiments on real network stacks and their reports."""

__version__ = "0.2.0"
