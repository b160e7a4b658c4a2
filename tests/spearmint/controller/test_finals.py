"""A final training starts as soon as its region is done, and counts as one of the running jobs."""

from __future__ import annotations

import pytest

from spearmint.drivers import Job
from spearmint.layout import TrialFolder, write_json
from tests.spearmint.fakes import FakeDriver


def is_final(folder: TrialFolder) -> bool:
    return folder.path.parent.name == "final"


class HoldsRegion(FakeDriver):
    """Ends no trial of region b before the final training of region a has ended."""

    def wait(self, jobs, timeout_s: float) -> None:
        finals = [job for job in self.ended if is_final(self.folders[job])]
        free = [job for job in jobs if finals or "/regions/b/" not in str(self.folders[job].path)]
        super().wait(free, timeout_s)

    def leave(self, job: Job, result: dict[str, object]) -> None:
        folder = self.folders[job]
        if is_final(folder):
            folder.model.mkdir(parents=True)
            (folder.model / "weights").write_text("1")
            write_json(folder.metrics, {"value": result["value"]})
        super().leave(job, result)


def test_it_does_not_wait_for_other_regions(make_loop, tmp_path) -> None:
    driver = HoldsRegion()
    settings = {"regions": ("a", "b"), "finished": 1, "concurrent": 2, "then_final": True}
    search = make_loop(driver, **settings)
    search.run()
    for region in "ab":
        (version,) = (tmp_path / "models" / region).glob("[0-9]*")
        assert (version / "files" / "weights").read_text() == "1"
    assert driver.most <= 2
    assert search.controller.finals.failures == []
    again = HoldsRegion()
    make_loop(again, **settings).run()
    assert not again.folders, "it was trained a second time"


def test_without_the_option_nothing_is_trained(make_loop, tmp_path) -> None:
    make_loop(HoldsRegion(), regions=("a",), finished=1).run()
    assert not (tmp_path / "models").exists()


def test_a_training_that_fails_is_named(make_loop) -> None:
    class Fails(HoldsRegion):
        def leave(self, job: Job, result: dict[str, object]) -> None:
            failed = {"reason": "no disk"} if is_final(self.folders[job]) else result
            FakeDriver.leave(self, job, failed)

    search = make_loop(Fails(), finished=1, then_final=True)
    search.run()
    assert search.controller.finals.failures == ["no disk"]
    assert any("no disk" in line for line in search.observer.lines)


@pytest.mark.parametrize("lost", [1, 2])
def test_a_lost_training_is_retried_once(make_loop, tmp_path, lost: int) -> None:
    class Loses(HoldsRegion):
        left = lost

        def wait(self, jobs, timeout_s: float) -> None:
            for job in jobs:
                if is_final(self.folders[job]) and self.left:
                    self.left -= 1
                    self.ended.add(job)
                    return
            super().wait(jobs, timeout_s)

    search = make_loop(Loses(), finished=1, then_final=True)
    search.run()
    assert bool(search.controller.finals.failures) is (lost == 2)
