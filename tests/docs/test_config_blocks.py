"""The pieces of config.pb and of starcluster's config on the how-to pages have keys that exist."""

from __future__ import annotations

import configparser
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from spearmint.config.reader import load_experiment
from starcluster.config import schema
from tests.docs.tools import DOCS

PAGES = sorted([*DOCS.glob("how_to/*.rst"), *DOCS.glob("start/*.rst")])
WHOLE = """language: PYTHON name: "net" variable { name: "lr" type: FLOAT min: 0 max: 1 }
variable { name: "units" type: INT size: 2 min: 1 max: 99 }
variable { name: "act" type: ENUM options: "relu" options: "tanh" }
"""


def blocks(language: str) -> Iterator[tuple[str, str]]:
    pattern = re.compile(rf"^( *)\.\. code-block:: {language}\n\n((?:\1   .*\n|\n)+)", re.MULTILINE)
    for page in PAGES:
        for found in pattern.finditer(page.read_text(encoding="utf-8")):
            yield page.stem, textwrap.dedent(found[2])


def pages(found: list[tuple[str, str]]) -> list[str]:
    return [page for page, _ in found]


INI = [*blocks("ini")]


@pytest.mark.parametrize(("page", "text"), INI, ids=pages(INI))
def test_sections_and_keys_of_starcluster_exist(page: str, text: str) -> None:
    config = configparser.ConfigParser()
    config.read_string(text)
    assert config.sections()
    for name in config.sections():
        known = schema.SECTIONS[name.split()[0]]
        if not name.startswith("plugin "):
            assert set(config[name]) <= set(known)
        assert "setup_class" in config[name] or not name.startswith("plugin ")


CONFIG = [
    each
    for each in blocks("text")
    if re.match(r"(language|variable|seed_point|resources)\b", each[1])
]


@pytest.mark.parametrize(("page", "text"), CONFIG, ids=pages(CONFIG))
def test_blocks_of_config_pb_load(page: str, text: str, tmp_path: Path) -> None:
    config = tmp_path / "config.pb"
    whole = text if "language" in text and "variable" in text else WHOLE + text
    if "language" in text and "variable" not in text:
        whole = text + WHOLE.partition('"net"')[2]
    if text.startswith("variable"):
        whole = WHOLE.splitlines()[0].partition("variable")[0] + text
    config.write_text(whole)
    load_experiment(config)
