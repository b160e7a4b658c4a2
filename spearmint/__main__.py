"""``python -m spearmint`` runs the ``spearmint`` command."""

from spearmint.cli import main

main()
