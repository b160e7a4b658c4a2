"""Values of any content take one line of a table or a log."""

from __future__ import annotations

from spearmint.formatting import format_params, format_vector


def test_a_value_with_line_ends_and_control_characters_is_one_line() -> None:
    params = {"act": ("a\nb", "\x1b[2Jred\x07", "c\td"), "lr": (0.125,)}
    assert format_params(params) == "act=a·b,red·,c d lr=0.125"


def test_a_long_vector_is_shortened_and_a_short_one_is_not() -> None:
    assert format_vector([0.5] * 20) == ",".join(["0.5"] * 20)
    assert format_vector(range(1000)) == "0,1,2,3,4,5,6,7,... (1,000 values)"
