"""What a user of Optuna types to tune the model of ``spearmint init --template=xgboost``."""

import sys

import numpy as np
import optuna
import xgboost as xgb

# The model
random = np.random.default_rng(0)
x = random.uniform(-1, 1, (2000, 8))
y = np.sin(4 * x[:, 0]) + x[:, 1] * x[:, 2] + random.normal(0, 0.1, 2000)
train, valid = xgb.DMatrix(x[:1500], y[:1500]), xgb.DMatrix(x[1500:], y[1500:])


def loss_of(settings):
    """Return the validation RMSE."""
    model = xgb.train(
        {"objective": "reg:squarederror", "eval_metric": "rmse", "nthread": 1, **settings},
        train,
        num_boost_round=300,
        evals=[(valid, "valid")],
        early_stopping_rounds=20,
        verbose_eval=False,
    )
    return model.best_score


# The search
def objective(trial):
    """Run one trial."""
    settings = {
        "learning_rate": trial.suggest_float("learning_rate", 0.001, 0.5, log=True),
        "max_depth": trial.suggest_int("max_depth", 2, 10),
        "subsample": trial.suggest_float("subsample", 0.3, 1),
        "min_child_weight": trial.suggest_float("min_child_weight", 0.1, 20, log=True),
    }
    return loss_of(settings)


study = optuna.create_study(storage="sqlite:///study.db", study_name="xgboost", load_if_exists=True)
study.optimize(objective, n_trials=int(sys.argv[1]))
print(study.best_value, study.best_params)
