"""One trial: the objective of study.py, called with the parameters of spearmint."""

import optuna
from study import objective


def main(job_id, params):
    """Return the loss."""
    return objective(optuna.trial.FixedTrial({name: values[0] for name, values in params.items()}))
