"""The directive ``diagram``: a drawing of lines and words becomes SVG that follows the theme.

svgbob (https://ivanceras.github.io/content/Svgbob/Specification.html) draws the picture. It is put
into the page itself, without svgbob's own colours: lines and words take the colour of the text, so
that light and dark mode both work. A drawing of up to 43 columns fits a phone of 390 px.

.. code-block:: rst

   .. diagram:: What the drawing shows, for those who cannot see it

      .---.     .---.
      | a +---->| b |
      '---'     '---'
"""

from __future__ import annotations

import hashlib
import html
import re
from typing import Any, ClassVar

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinxcontrib.svgbob._svgbob import to_svg

MOST_COLUMNS = 43
"""Columns of 8 px that fit between the margins of a page on a phone of 390 px."""

_WORD = re.compile(r"(?=\S*\w\w)[\w()][\w().,:-]*[\w).,:]")
"""Words, drawn here: svgbob would take some of their letters, hyphens and brackets for lines."""

_COLUMN, _ROW = 8, 16
"""Size of a character in svgbob's pictures."""

_STYLE = """\
.{name} line, .{name} path, .{name} rect, .{name} circle, .{name} polygon {{
stroke: currentColor; stroke-width: 1.5; fill: none; stroke-linecap: round; }}
.{name} .filled {{ fill: currentColor; }}
.{name} .broken {{ stroke-dasharray: 6; }}
.{name} text {{ white-space: pre; fill: currentColor; font-size: 13px;
font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }}
"""


def draw(drawing: str, label: str) -> str:
    """Return ``drawing`` as an SVG element, with ``label`` for screen readers.

    Raises:
        ValueError: It has more columns than a phone shows.
    """
    lines = [line.rstrip() for line in drawing.splitlines()]
    widest = max(map(len, lines), default=0)
    if widest > MOST_COLUMNS:
        raise ValueError(f"a drawing of {widest} columns does not fit a phone: {MOST_COLUMNS} fit")
    svg = to_svg("\n".join(_WORD.sub(lambda word: " " * len(word[0]), line) for line in lines))
    name = "diagram-" + hashlib.sha256(drawing.encode()).hexdigest()[:8]
    svg = re.sub(r"<style>.*?</style>", "", svg, flags=re.DOTALL)
    # Identifiers belong to the whole page, which may have several drawings.
    svg = re.sub(r'id="(\w+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r"url\(#(\w+)\)", rf"url(#{name}-\1)", svg)
    width, height = (int(value) for value in re.findall(r'(?:width|height)="(\d+)"', svg)[:2])
    width = max(width, (widest + 1) * _COLUMN)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="diagram {name}" role="img" '
        f'aria-label="{html.escape(label)}" viewBox="0 0 {width} {height}" width="{width}" '
        f'style="max-width: 100%; height: auto; display: block; margin: 1em auto;">'
        f"<title>{html.escape(label)}</title><style>{_STYLE.format(name=name)}</style>"
    )
    svg = re.sub(r"<svg[^>]*>", lambda _: head, svg, count=1)
    return svg.replace("</svg>", f"{_words(lines)}</svg>")


def _words(lines: list[str]) -> str:
    """Return the words as text elements, each in its column and row."""
    found = ((row, word) for row, line in enumerate(lines) for word in _WORD.finditer(line))
    return "".join(
        f'<text x="{word.start() * _COLUMN + 2}" y="{row * _ROW + 12}">'
        f"{html.escape(word[0])}</text>"
        for row, word in found
    )


class Diagram(SphinxDirective):
    """Draw the content; the argument says in words what it shows."""

    has_content = True
    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[dict[str, Any]] = {}

    def run(self) -> list[nodes.Node]:
        """Return the drawing as SVG for HTML, as text for any other builder."""
        drawing = "\n".join(self.content)
        if self.env.app.builder.format != "html":
            return [nodes.literal_block(drawing, drawing)]
        try:
            svg = draw(drawing, " ".join(self.arguments[0].split()))
        except ValueError as error:
            raise self.error(str(error)) from error
        return [nodes.raw("", svg, format="html")]


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive."""
    app.add_directive("diagram", Diagram)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
