"""Sizes as Grid Engine writes and reads them."""

from __future__ import annotations

import math
import re

_SIZE = re.compile(
    r"\+?(?:(?P<whole>0[xX][0-9a-fA-F]{1,16}|0[0-7]{1,16})"
    r"|(?P<decimal>(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?))"
    r"(?P<unit>[kKmMgGtT]?)",
    re.ASCII,
)
_UNITS = {"": 1.0} | {
    letter: base**power
    for power, letters in enumerate(("kK", "mM", "gG", "tT"), start=1)
    for letter, base in zip(letters, (1000.0, 1024.0), strict=True)
}


def read_size(text: str) -> float:
    """Return the number of ``8G``, ``.5g``, ``1e3M``, ``0x10M`` or ``010G``.

    Small letters are powers of 1000, capital ones powers of 1024. After ``0x`` the number is
    hexadecimal, after another ``0`` octal.

    Raises:
        ValueError: ``text`` has another form.
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ValueError("expected a size, e.g. 8G or 500M")
    if whole := found["whole"]:
        number = float(int(whole, 16 if whole[1] in "xX" else 8))
    else:
        number = float(found["decimal"])
    if math.isinf(number):
        raise ValueError("expected a smaller size")
    return number * _UNITS[found["unit"]]
