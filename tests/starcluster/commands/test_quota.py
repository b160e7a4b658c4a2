"""A dry run compares the launch with the quota of the account."""

from __future__ import annotations

import pytest

from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import LaunchRequest, Place
from tests.starcluster.conftest import IMAGE, Run
from tests.starcluster.front import Front


@pytest.mark.parametrize("option", ["--dry-run", "-v"])
def test_a_dry_run_above_the_quota_fails_and_passes_nothing(
    big: Run, front: Front, option: str
) -> None:
    front.quota = 3.0  # two t3.micro have 4 vCPUs
    done = big("start", option, "big")
    assert done.returncode == 1
    assert "Quota: 4 vCPUs of Standard on-demand instances; the quota is 3, too low" in done.stdout
    assert "passed" not in done.stdout
    assert "L-1216C47A" in done.stderr
    front.quota = 4.0
    done = big("start", option, "big")
    assert (done.returncode, done.stderr) == (0, "")
    assert "All checks passed. Nothing was launched." in done.stdout


def test_what_runs_already_counts_toward_the_quota(big: Run, front: Front, ec2: Ec2) -> None:
    front.quota = 5.0
    assert big("start", "--dry-run", "big").returncode == 0
    place = Place(instance_type="t3.micro")
    ec2.run(LaunchRequest(image_id=IMAGE, count=1, places=(place,)))
    done = big("start", "--dry-run", "big")
    assert done.returncode == 1
    assert "4 vCPUs of Standard on-demand instances, 2 in use; the quota is 5, too" in done.stdout
