"""A small Gaussian process for search: numpy and scipy only, no Optuna, no state."""
