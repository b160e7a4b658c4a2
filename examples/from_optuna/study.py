"""An existing Optuna study; spearmint continues it, or gives it its Gaussian process."""

import sys

import optuna

from spearmint.choosers import GPEIOptChooser


def objective(trial):
    """Return a made-up loss with its minimum at lr=0.01 and units=200."""
    lr = trial.suggest_float("lr", 1e-5, 1, log=True)
    units = trial.suggest_int("units", 16, 512)
    return abs(lr - 0.01) ** 0.5 + (units - 200) ** 2 / 1e5


def main():
    """Run ten trials of a sampler: ``python study.py tpe`` or ``python study.py gp``."""
    sampler = GPEIOptChooser(seed=1) if "gp" in sys.argv else optuna.samplers.TPESampler(seed=1)
    study = optuna.create_study(
        storage="sqlite:///optuna.db", study_name="loss", sampler=sampler, load_if_exists=True
    )
    study.optimize(objective, n_trials=10)
    print(f"{len(study.trials)} trials, best {study.best_value:.4f}")


if __name__ == "__main__":
    main()
