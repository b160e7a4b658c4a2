"""Take the picture of a report for README and the landing page, with chromium.

python docs/_tools/report_picture.py SEARCH --output docs/_static/report.png
"""

from __future__ import annotations

import argparse
import io
import shutil
from pathlib import Path

from PIL import Image
from selenium import webdriver

WIDTH, MOST_HEIGHT = 1000, 1700
"""CSS pixels of the window, and of the part of the page that is shown."""
_COLOURS = 128
_BOTTOMS = (
    "return [...document.querySelectorAll('section')].map(s => s.getBoundingClientRect().bottom)"
)


def take(page: Path, output: Path) -> None:
    """Write what a browser shows of ``page`` to ``output``, a PNG."""
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    # A driver of this machine: selenium would look for a newer one on the network.
    browser = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        browser.set_window_size(WIDTH, MOST_HEIGHT + 200)
        browser.get(page.resolve().as_uri())
        bottoms = browser.execute_script(_BOTTOMS)
        picture = Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB")
    finally:
        browser.quit()
    height = max((int(bottom) for bottom in bottoms if bottom <= MOST_HEIGHT), default=MOST_HEIGHT)
    picture = picture.crop((0, 0, picture.width, height + 16))
    picture.quantize(_COLOURS, dither=Image.Dither.NONE).save(output, optimize=True)


def main() -> None:
    """Take one picture."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("search", type=Path, help="Directory of a search that has a report.")
    parser.add_argument("--output", type=Path, required=True, help="PNG to write.")
    arguments = parser.parse_args()
    take(arguments.search / "report" / "index.html", arguments.output)


if __name__ == "__main__":
    main()
