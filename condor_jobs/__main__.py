"""Run the ``condor-jobs`` command as ``python -m condor_jobs``."""

from condor_jobs.cli import main

if __name__ == "__main__":
    main()
