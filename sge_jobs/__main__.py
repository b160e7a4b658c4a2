"""``python -m sge_jobs`` is the ``sge-jobs`` command."""

from sge_jobs.cli import main

if __name__ == "__main__":
    main()
