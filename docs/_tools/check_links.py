"""Check that every internal link of the built HTML and of README and CONTRIBUTING has a target."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[2]
HTML = ROOT / "docs" / "_build" / "html"
SOURCES = ("README.rst", "CONTRIBUTING.rst", "CHANGELOG.rst")
PATH = re.compile(  # without what `make docs` writes
    r"``((?!docs/_build/)(?:docs|examples|tests|benchmarks|spearmint|starcluster|sge_jobs|condor_jobs|pycuda_nn)/[\w./-]*)``"
)
TARGET = re.compile(r"(?:image|figure|include):: (\S+)|`[^`<]*<([^>]+)>`_|(https?://[^\s`>)\]]+)")


class Page(HTMLParser):
    """Collects the anchors of a page and what it links to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[tuple[int, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note ids, links, and sources of images and scripts."""
        for name, value in attrs:
            if name in {"id", "name"} and value:
                self.anchors.add(value)
            elif name in {"href", "src", "data"} and value and tag != "base":
                self.links.append((self.getpos()[0], value))


def broken_in_html(folder: Path) -> tuple[list[str], set[str]]:
    """Return a line for each link without a target, and the external URLs."""
    pages = {
        path: Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))
    }
    broken: list[str] = []
    external: set[str] = set()
    for path, page in pages.items():
        for line, link in page.links:
            parts = urlsplit(link)
            if parts.scheme in {"http", "https"}:
                external.add(link)
            elif not parts.scheme:
                if why := _missing(path, link, pages):
                    broken.append(f"{path.relative_to(folder)}:{line}: {link}: {why}")
            elif parts.scheme not in {"mailto", "data", "javascript"}:
                broken.append(f"{path.relative_to(folder)}:{line}: {link}: unknown scheme")
    return broken, external


def _missing(path: Path, link: str, pages: dict[Path, Page]) -> str:
    """Return why an internal link of ``path`` leads nowhere; empty if it does not."""
    parts = urlsplit(link)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.exists():
        return "no such file"
    anchor = unquote(parts.fragment)
    known = pages.get(target)
    if anchor and known is not None and anchor not in known.anchors:
        return "no such anchor"
    return ""


def broken_in_sources(root: Path) -> tuple[list[str], set[str]]:
    """Return a line for each path that does not exist, and the external URLs."""
    broken: list[str] = []
    external: set[str] = set()
    for name in SOURCES:
        text = (root / name).read_text(encoding="utf-8")
        for at, target in _targets(text):
            line = text.count("\n", 0, at) + 1
            if urlsplit(target).scheme in {"http", "https"}:
                external.add(target.rstrip(".,"))
            elif "*" not in target and not (root / target.partition("#")[0]).exists():
                broken.append(f"{name}:{line}: {target}: no such file")
    return broken, external


def _targets(text: str) -> Iterator[tuple[int, str]]:
    for found in TARGET.finditer(text):
        yield found.start(), next(filter(None, found.groups()))
    for found in PATH.finditer(text):
        yield found.start(), found[1]


def malformed(url: str) -> bool:
    """Return whether an external URL has no host or contains a space."""
    parts = urlsplit(url)
    return " " in url or "." not in (parts.hostname or "")


def main() -> int:
    """Print each broken link; return 1 if there is one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--html", type=Path, default=HTML, help="built pages; default: %(default)s")
    parser.add_argument("--external", action="store_true", help="also print all external URLs")
    options = parser.parse_args()
    if not (options.html / "index.html").is_file():
        sys.stderr.write(f"no pages in {options.html}: run make docs\n")
        return 2
    in_html, external = broken_in_html(options.html.resolve())
    in_sources, more = broken_in_sources(ROOT)
    external |= more
    found = [*in_html, *in_sources]
    found += [f"{url}: malformed URL" for url in sorted(external) if malformed(url)]
    sys.stdout.write("".join(f"{line}\n" for line in found))
    if options.external:
        sys.stdout.write("".join(f"{url}\n" for url in sorted(external)))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
