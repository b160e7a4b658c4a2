"""Train a network on one GPU: buffers, weights, the captured training step, evaluation."""
