"""Run the ``sge-jobs`` command as ``python -m sge_jobs``."""

from sge_jobs.cli import main

if __name__ == "__main__":
    main()
