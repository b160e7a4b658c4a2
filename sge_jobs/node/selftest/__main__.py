"""Run the self-test as ``python -m sge_jobs.node.selftest``."""

import sys

from sge_jobs.node.selftest.selftest import main

sys.exit(main())
