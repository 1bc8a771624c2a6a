"""Experiments: what `experiments/*.toml` says, run on emulated links, judged and kept."""
