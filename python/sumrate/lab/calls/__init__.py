"""A call or a game through a transport under test: small messages at a steady pace, echoed."""
