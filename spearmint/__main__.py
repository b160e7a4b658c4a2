"""``python -m spearmint``: the same as the command."""

from spearmint.cli import main

main()
