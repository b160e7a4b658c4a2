"""The demo cluster for trying every command."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.testbed.cloud import REPOSITORY
from tests.testbed.test_cell import traces

pytestmark = [pytest.mark.sge, pytest.mark.slow]
TYPED = """
starcluster listclusters
starcluster sshmaster gpucluster qhost < /dev/null
starcluster put -u sgeadmin gpucluster branin . && echo put is done
exit
"""


def test_a_person_gets_a_shell_beside_a_cluster_and_nothing_is_left_after_it() -> None:
    before = traces()
    done = subprocess.run(
        [sys.executable, "-m", "tests.testbed.cluster_demo"],
        check=False,
        cwd=REPOSITORY,
        input=TYPED,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"gpucluster: running.*\b3 nodes", done.stdout)
    assert (
        len(re.findall(r"^\s*(?:master|node00\d)\s+running\s.*us-east-1a", done.stdout, re.M)) == 3
    )
    assert done.stdout.count("lx-amd64") == 3
    assert "put is done" in done.stdout
    assert traces() == before
