"""The options of ``pycuda-nn train`` for larger minibatches."""

from __future__ import annotations

import click
import cloup

from pycuda_nn.cli.options import HelpOption

LARGE_BATCH_OPTIONS = cloup.option_group(
    "Large minibatches",
    cloup.option(
        "--scale-batch", cls=HelpOption, type=click.IntRange(1), metavar="N",
        help="Train in minibatches N times as large, at a higher learning rate, after a warm-up of "
        "5 epochs or a tenth of all. Default: 1, or as the settings say.",
    ),
    cloup.option(
        "--scale-rule", cls=HelpOption, type=click.Choice(["linear", "sqrt"]),
        help="Multiply the learning rate by N (linear) or by its square root (sqrt), which is "
        "usual for adam. Default: linear.",
    ),
)  # fmt: skip


def large_batch_words(times: int | None, rule: str | None) -> list[str]:
    """Return the settings of these options as KEY=VALUE."""
    if rule is not None and times is None:
        raise click.UsageError("--scale-rule needs --scale-batch N.")
    values = {"scale_batch": times, "scale_rule": rule}
    return [f"{key}={value}" for key, value in values.items() if value is not None]
