"""One trial: train a network on the digits, return its validation loss.

The 1,797 images are split once, by a fixed seed: 60 % to train, 20 % to choose by, 20 % to test.
Trials never see the test images; ``final.py`` uses them once, at the end.
"""

import pycuda_nn as nn
from spearmint import report

EPOCHS = 30
SPLIT_SEED = 0


def images():
    """Return the three parts of the digits: train, validation, test."""
    return nn.split(nn.load_data("digits"), fractions=(0.6, 0.2, 0.2), seed=SPLIT_SEED)


def network(params):
    """Return how to train the network that ``params`` of the search describe."""
    return nn.TrainConfig(
        hidden=(int(params["units"][0]),) * int(params["depth"][0]),
        activation=params["activation"][0],
        dropout=float(params["dropout"][0]),
        l2=float(params["l2"][0]),
        optimizer="sgd",
        lr=float(params["lr"][0]),
        momentum=float(params["momentum"][0]),
        nesterov=True,
        schedule="cosine",
        warmup_epochs=1,
        epochs=EPOCHS,
        batch_size=32,
        seed=1,
    )


def main(job_id, params):
    """Return the validation loss (cross-entropy, nats an image) after the last epoch."""
    train, valid, _ = images()

    def on_epoch(epoch):
        report(epoch.epoch, epoch.valid_loss)
        print(
            f"epoch {epoch.epoch}: train loss {epoch.train_loss:.4f}, "
            f"validation loss {epoch.valid_loss:.4f}, error {epoch.valid_error:.2%}"
        )

    result = nn.train(network(params), train, valid, on_epoch=on_epoch)
    return result.history[-1].valid_loss
