"""Take the pictures of reports and of the dashboard for README and the documentation, in chromium.

    python docs/_tools/report_pictures.py --demo /tmp/starmint/examples/digits

``--demo`` is a finished search of ``make demo`` with its report. A small search of three regions is
run for the other two pictures.
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from PIL import Image
from rich.console import Console
from selenium import webdriver

from spearmint.view.dashboard import WebStatus
from spearmint.view.web_key import with_key

STATIC = Path(__file__).parents[1] / "_static"
WIDTH, MOST_HEIGHT = 1000, 1700
"""CSS pixels of the window, and of the part of a report that is shown."""
PHONE = {"width": 390, "height": 1200, "pixelRatio": 2.0}
_DARK = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
_COLOURS = 255
_BOTTOMS = (
    "return [...document.querySelectorAll('section')].map(s => s.getBoundingClientRect().bottom)"
)
_CHARTS = "return document.querySelectorAll('.js-plotly-plot .main-svg').length"
_DASHBOARD_S, _DASHBOARD_HEIGHT = 60.0, 1000
_CONFIG = """\
language: PYTHON
name:     "recommender"
region:   "us"
region:   "de"
region:   "jp"
variable { name: "lr"       type: FLOAT  min: 0.0001  max: 1  log: true }
variable { name: "units"    type: INT    min: 16      max: 512 }
variable { name: "dropout"  type: FLOAT  min: 0       max: 0.6 }
"""
_CODE = """\
import math, time
import spearmint

BEST_LR = {"us": 0.015, "de": 0.007, "jp": 0.003}

def main(job_id, params):
    time.sleep(0.2)
    lr = math.log10(params["lr"][0] / BEST_LR[spearmint.region()])
    units = math.log(params["units"][0] / 130)
    return 0.19 + 0.08 * lr**2 + 0.05 * units**2 + 0.8 * (params["dropout"][0] - 0.25) ** 2
"""


@contextmanager
def browser(height: int, *, phone: bool = False) -> Iterator[webdriver.Chrome]:
    """Yield a browser without a window."""
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    if phone:
        options.add_experimental_option("mobileEmulation", {"deviceMetrics": PHONE})
    # A driver of this machine: selenium would look for a newer one on the network.
    found = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        found.set_window_size(WIDTH, height)
        yield found
    finally:
        found.quit()


def save(screenshot: bytes, height: int, output: Path) -> None:
    """Write the upper ``height`` pixels of a screenshot with few colours."""
    picture = Image.open(io.BytesIO(screenshot)).convert("RGB")
    picture = picture.crop((0, 0, picture.width, min(height, picture.height)))
    picture.quantize(_COLOURS, dither=Image.Dither.NONE).save(output, optimize=True)


def take_report(search: Path, output: Path) -> None:
    """Write the first sections of the report of ``search`` to ``output``, a PNG."""
    with browser(MOST_HEIGHT + 200) as page:
        page.get((search / "report" / "index.html").resolve().as_uri())
        bottoms = page.execute_script(_BOTTOMS)
        screenshot = page.get_screenshot_as_png()
    height = max((int(bottom) for bottom in bottoms if bottom <= MOST_HEIGHT), default=MOST_HEIGHT)
    save(screenshot, height + 16, output)


def take_dark_and_phone(search: Path) -> None:
    """Write the top of the report of ``search`` in dark mode, and on a phone."""
    url = (search / "report" / "index.html").resolve().as_uri()
    with browser(1200) as page:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", _DARK)
        page.get(url)
        save(page.get_screenshot_as_png(), 1000, STATIC / "report_dark.png")
    with browser(PHONE["height"], phone=True) as page:
        page.get(url)
        save(page.get_screenshot_as_png(), 2 * PHONE["height"], STATIC / "report_phone.png")


def answers(host: str, port: int) -> bool:
    """Return whether a server accepts connections."""
    with suppress(OSError), socket.create_connection((host, port), timeout=1.0):
        return True
    return False


def take_dashboard(search: Path, output: Path) -> None:
    """Write the dashboard of the first study of ``search`` to ``output``, a PNG."""
    text = io.StringIO()
    url = f"sqlite:///{search / 'spearmint.db'}"
    with (
        WebStatus(
            True,
            "127.0.0.1",
            0,
            config=search / "config.pb",
            url=url,
            console=Console(file=text, width=200),
        ) as status,
        browser(_DASHBOARD_HEIGHT + 200) as page,
    ):
        host, port = re.findall(r"http://([\d.]+):(\d+)", text.getvalue())[0]
        deadline = time.monotonic() + _DASHBOARD_S
        while not answers(host, int(port)) and time.monotonic() < deadline:
            time.sleep(0.5)
        page.get(with_key(f"http://{host}:{port}/dashboard/studies/1", status.key))
        while page.execute_script(_CHARTS) < 3 and time.monotonic() < deadline:
            time.sleep(0.5)
        time.sleep(2.0)  # charts are drawn after they are added
        save(page.get_screenshot_as_png(), _DASHBOARD_HEIGHT, output)


def search_regions(directory: Path) -> None:
    """Run a search of three regions and write its report."""
    (directory / "config.pb").write_text(_CONFIG)
    (directory / "recommender.py").write_text(_CODE)
    program = [sys.executable, "-m", "spearmint"]
    search = [*program, "--max-concurrent=3", "--max-finished-jobs=30", str(directory)]
    subprocess.run(search, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([*program, "report", str(directory)], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--demo", type=Path, required=True, help="Finished search of make demo, with its report."
    )
    arguments = parser.parse_args()
    take_report(arguments.demo, STATIC / "report.png")
    take_dark_and_phone(arguments.demo)
    with tempfile.TemporaryDirectory(prefix="recommender") as directory:
        search_regions(Path(directory))
        take_report(Path(directory), STATIC / "regions.png")
        take_dashboard(Path(directory), STATIC / "dashboard.png")


if __name__ == "__main__":
    main()
