"""The block ``fidelity`` of a config.pb."""

from __future__ import annotations

from spearmint.config.document import Document
from spearmint.fidelity import NAME, REDUCTION, Fidelity

_FIX = 'Write, for example: fidelity { name: "epochs" min: 1 max: 81 reduction_factor: 3 }'
_MOST = 2**31 - 1  # the last step of a report


def read_fidelity(document: Document) -> Fidelity | None:
    """Return the block ``fidelity``; None if there is none.

    Raises:
        ConfigError: A field is missing or invalid, or another field excludes the block.
    """
    message = document.message
    if not message.HasField("fidelity"):
        return None
    block, at = message.fidelity, ("fidelity", 0)
    if not block.HasField("max"):
        raise document.error("fidelity without max, the steps of a full training", _FIX, *at)
    fidelity = Fidelity(
        name=block.name.strip() or NAME,
        low=block.min if block.HasField("min") else 1,
        high=block.max,
        reduction=block.reduction_factor if block.HasField("reduction_factor") else REDUCTION,
    )
    if problem := fidelity_problem(fidelity):
        raise document.error(f"fidelity has {problem}", _FIX, *at)
    for other in ("objective", "constraint", "pruner"):
        if any(field.name == other for field, _ in message.ListFields()):
            fix = f"Remove one of them: a search with rungs does not support {other}."
            raise document.error(f"fidelity and {other} exclude each other", fix, other, 0)
    return fidelity


def fidelity_problem(fidelity: Fidelity) -> str:
    """Return what is invalid in a block, as ``fidelity has ...``; empty if nothing is."""
    if fidelity.reduction < 2:
        return f"reduction_factor {fidelity.reduction}, expected 2 or more"
    if not 1 <= fidelity.low <= fidelity.high <= _MOST:
        return f"min {fidelity.low} and max {fidelity.high}, expected 1 <= min <= max < 2**31"
    if len(fidelity.rungs) < 2:
        return (
            f"one rung: max {fidelity.high} / reduction_factor {fidelity.reduction} is below min "
            f"{fidelity.low}"
        )
    return ""
