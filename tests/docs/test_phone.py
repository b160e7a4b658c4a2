"""The check of a page's width measures it in a real Chromium."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.tools import tool

pytestmark = [pytest.mark.browser, pytest.mark.slow]
HEAD = '<!doctype html><meta name="viewport" content="width=device-width">'


def test_a_page_that_is_too_wide_is_named_and_what_scrolls_is_not(tmp_path: Path) -> None:
    wide = '<table style="width: 600px"><tr><td>Wide</table>'
    (tmp_path / "fits.html").write_text(f'{HEAD}<div style="overflow-x: auto">{wide}</div>')
    (tmp_path / "wide.html").write_text(f"{HEAD}<p>{wide}")
    (tmp_path / "search.html").write_text(f"{HEAD}<p>{wide}")  # generated: not measured
    n_pages, (found,) = tool("check_phone").wide_pages(tmp_path)
    assert n_pages == 2
    assert found.startswith("wide.html: 6")
    assert '"Wide"' in found
