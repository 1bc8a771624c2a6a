"""Initial access at 60 GHz: the A-BFT of 802.11ad/ay and JPOC."""
