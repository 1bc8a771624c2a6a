"""Channels: free space, the TGad conference room, TR 38.901's indoor office, a room of images."""
