"""``-w`` in a real browser: Chromium shows the running search and follows it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

import spearmint
from tests.spearmint.conftest import ONE_FLOAT, MakeExperiment

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# Trial 1 ends immediately, trial 2 when the test creates the file "go", trial 3 never.
CODE = """
import os, time, spearmint
VALUES = {"us": {1: 0.7125, 2: 0.2875}, "de": {1: 0.9375, 2: 0.3125}}
def main(job_id, params):
    while job_id > 1 and not os.path.exists("go") or job_id > 2:
        time.sleep(0.05)
    return VALUES[spearmint.region()][job_id]
"""
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--window-size=1280,1100",
)


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[webdriver.Chrome]:
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for flag in (*_FLAGS, f"--user-data-dir={tmp_path / 'chromium'}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    yield driver
    driver.quit()


def shows(*texts: str) -> Callable[[webdriver.Chrome], bool]:
    """Return a condition: the page shows all of ``texts``."""

    def condition(browser: webdriver.Chrome) -> bool:
        page = browser.find_element(By.TAG_NAME, "body").text
        return all(text in page for text in texts)

    return condition


def test_the_page_opens_shows_the_best_value_and_follows(
    make_experiment: MakeExperiment, browser: webdriver.Chrome
) -> None:
    experiment = make_experiment(CODE, ONE_FLOAT + 'region: "us"\nregion: "de"\n')
    controller = experiment.start("-w", "-n", "2", "--max-finished-jobs=3")
    try:
        assert controller.stdout is not None
        address = None
        while address is None:
            address = re.search(
                r"(http://127\.0\.0\.1:\d+/)\?key=\S+", controller.stdout.readline()
            )
        wait = WebDriverWait(browser, 90, ignored_exceptions=[Exception])
        wait.until(lambda b: b.get(address.group()) is None)
        wait.until(shows("trial@us", "trial@de"))
        browser.get(f"{address[1]}dashboard/studies/1")
        wait.until(shows("trial@us", "Best Trial (number=0)", "0.7125"))
        (experiment.root / "go").touch()
        wait.until(shows("Best Trial (number=1)", "0.2875"))  # the same page, without a reload
    finally:
        controller.kill()
        controller.communicate()
        assert experiment.command("cleanup").returncode == 0


def test_the_figures_of_a_long_search_stand_in_one_row_and_in_their_cards(
    make_experiment: MakeExperiment, browser: webdriver.Chrome
) -> None:
    experiment = make_experiment()
    source = experiment.root / "earlier.csv"
    source.write_text("x,value,seconds\n0.5,1,86340\n")
    argv = [sys.executable, "-m", "spearmint", "import", str(experiment.root), str(source)]
    assert subprocess.run(argv, check=False).returncode == 0
    with spearmint.Search(experiment.config) as search:
        search.prune(search.ask())
    assert experiment.command("report").returncode == 0
    browser.get((experiment.root / "report" / "index.html").as_uri())
    cards = browser.find_elements(By.CSS_SELECTOR, ".figures .card")
    assert len(cards) == 7
    assert len({card.rect["y"] for card in cards}) == 1
    wide = "return arguments[0].scrollWidth > arguments[0].clientWidth"
    assert not any(browser.execute_script(wide, card) for card in cards)
