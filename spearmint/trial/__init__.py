"""Run one trial where its job runs. Imports no Optuna, numpy or scipy: it starts on every node."""
