"""Check that no built page is wider than a phone of 390 pixels; needs chromium and selenium."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

HTML = Path(__file__).parents[1] / "_build" / "html"
WIDTH, HEIGHT = 390, 844
GENERATED = {"genindex.html", "search.html"}
# The widest elements that stick out, as a hint; what scrolls inside its box does not count.
WIDE = """
const out = [];
for (const e of document.querySelectorAll('body *')) {
  const box = e.getBoundingClientRect();
  if (box.right > innerWidth + 1 && box.width > 0) {
    let p = e.parentElement, scrolls = false;
    for (; p && p !== document.body; p = p.parentElement) {
      if (/auto|scroll|hidden/.test(getComputedStyle(p).overflowX)) { scrolls = true; break; }
    }
    if (!scrolls) out.push(`${e.tagName.toLowerCase()} "${e.textContent.trim().slice(0, 40)}"`);
  }
}
return out.slice(-2).join(', ');
"""


def wide_pages(folder: Path, width: int = WIDTH) -> tuple[int, list[str]]:
    """Return how many pages were loaded, and a line for each that is wider than ``width``."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    pages = [path for path in sorted(folder.rglob("*.html")) if path.name not in GENERATED]
    found: list[str] = []
    with tempfile.TemporaryDirectory() as profile:
        options = Options()
        options.binary_location = shutil.which("chromium") or ""
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"):
            options.add_argument(flag)
        options.add_argument(f"--user-data-dir={profile}")
        driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        try:
            metrics = {"width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            for path in pages:
                driver.get(path.resolve().as_uri())
                wide = driver.execute_script("return document.documentElement.scrollWidth")
                if wide > width:
                    why = driver.execute_script(WIDE)
                    found.append(f"{path.relative_to(folder)}: {wide} px: {why}")
        finally:
            driver.quit()
    return len(pages), found


def main() -> int:
    """Print each page that is too wide; return 1 if there is one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--html", type=Path, default=HTML, help="built pages; default: %(default)s")
    folder = parser.parse_args().html
    if not all(map(shutil.which, ("chromium", "chromedriver"))):
        sys.stderr.write("not checked on a phone: chromium is not installed\n")
        return 0
    _, found = wide_pages(folder)
    sys.stdout.write("".join(f"{line}\n" for line in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
