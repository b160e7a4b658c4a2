"""Run the command line: ``python -m starcluster``."""

from starcluster.cli import main

main()
