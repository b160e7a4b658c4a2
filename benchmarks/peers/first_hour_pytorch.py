"""What a user of Optuna types to tune the model of ``spearmint init --template=pytorch``."""

import sys

import optuna
import torch
from torch import nn

# The model
EPOCHS = 30
device = "cuda" if torch.cuda.is_available() else "cpu"


def load():
    """Return train and validation data."""
    random = torch.Generator().manual_seed(0)
    angle = torch.rand(2000, generator=random) * 6
    arm = torch.arange(2000) % 2
    radius = angle / 6 + 0.02 * torch.randn(2000, generator=random)
    turn = angle + arm * torch.pi
    x = torch.stack([radius * torch.cos(turn), radius * torch.sin(turn)], dim=1)
    return (x[:1500].to(device), arm[:1500].to(device)), (
        x[1500:].to(device),
        arm[1500:].to(device),
    )


def train(lr, units, dropout, report):
    """Return the validation loss."""
    torch.manual_seed(0)
    (x, y), (x_valid, y_valid) = load()
    model = nn.Sequential(
        nn.Linear(2, units), nn.ReLU(), nn.Dropout(dropout),
        nn.Linear(units, units), nn.ReLU(), nn.Linear(units, 2),
    ).to(device)  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    loss_of = nn.CrossEntropyLoss()
    for epoch in range(EPOCHS):
        model.train()
        for rows in torch.randperm(len(x), device=device).split(100):
            optimizer.zero_grad()
            loss_of(model(x[rows]), y[rows]).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            loss = loss_of(model(x_valid), y_valid).item()
        report(epoch, loss)
    return loss


# The search
def objective(trial):
    """Run one trial."""
    lr = trial.suggest_float("lr", 0.0001, 0.3, log=True)
    units = trial.suggest_int("units", 8, 256, log=True)
    dropout = trial.suggest_float("dropout", 0, 0.5)

    def report(epoch, loss):
        trial.report(loss, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned

    return train(lr, units, dropout, report)


study = optuna.create_study(
    storage="sqlite:///study.db",
    study_name="pytorch",
    load_if_exists=True,
    pruner=optuna.pruners.MedianPruner(),
)
study.optimize(objective, n_trials=int(sys.argv[1]))
print(study.best_value, study.best_params)
