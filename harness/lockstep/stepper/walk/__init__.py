"""Random walks: drawn from a seed, run, measured and shrunk."""
