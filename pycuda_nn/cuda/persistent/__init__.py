"""Train a small network in one persistent kernel per epoch."""
