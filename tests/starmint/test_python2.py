"""Python 2 is recognised, and converted without a loss."""

from __future__ import annotations

from pathlib import Path

import pytest

from starmint.python2 import conversion_of, is_python3


@pytest.mark.parametrize(
    "text",
    [
        "labels = labels.long()\nname = input('name: ')\nprint('epoch', 3)\n",
        "import numpy as np\nx = np.add.reduce([1, 2])\n",
        "# unicode(x)\n'xrange(3), d.iteritems()'\n",
        "from functools import reduce\nx = reduce(max, [1])\n",
        "def file(x): return x\nfile(1)\n",
        "try:\n    xrange\nexcept NameError:\n    xrange = range\nxrange(3)\n",
        "def f(long): return long(1)\n",
        "import pandas as pd\nfor x in pd.DataFrame().iteritems(): pass\n",
        "import six\nsix.iteritems({})\n",
        "try:\n    import cPickle as pickle\nexcept ImportError:\n    import pickle\n",
        "from .commands import x\n",
    ],
)
def test_python_3_is_left_alone(text: str) -> None:
    assert is_python3(text, "a.py")


@pytest.mark.parametrize(
    "text",
    [
        "xrange(3)\n",
        "{}.iteritems()\n",
        "{}.has_key(1)\n",
        "def f():\n    import urllib2\n",
        "from urlparse import urljoin\n",
        "print 3\n",
    ],
)
def test_python_2_is_recognised(text: str) -> None:
    assert not is_python3(text, "a.py")


def test_what_works_in_both_stays(tmp_path: Path) -> None:
    pytest.importorskip("fissix", reason="needs the extra python2")
    file = tmp_path / "a.py"
    rest = "name = input('name: ')\nprint('epoch', 3, flush=True)\n"
    file.write_text(f"for i in xrange(3): pass\n{rest}")
    found = conversion_of(file)
    assert found is not None
    assert found.new == f"for i in range(3): pass\n{rest}"


@pytest.mark.parametrize(
    ("head", "read", "written"),
    [
        ("# coding: latin-1\n", "latin-1", "latin-1"),
        ("", "utf-8-sig", "utf-8-sig"),
        ("", "utf-8", "utf-8"),
        ("", "latin-1", "utf-8"),
    ],
)
def test_the_encoding_stays_true(tmp_path: Path, head: str, read: str, written: str) -> None:
    pytest.importorskip("fissix", reason="needs the extra python2")
    file = tmp_path / "a.py"
    file.write_text(f"{head}\n\nprint 'caf\u00e9'\n", encoding=read)
    found = conversion_of(file)
    assert found is not None
    found.write()
    assert file.read_bytes() == f"{head}\n\nprint('caf\u00e9')\n".encode(written)
    compile(file.read_bytes(), file, "exec")


def test_python_3_with_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("print('x')\n", encoding="utf-8-sig")
    assert conversion_of(file) is None


def test_the_mode_stays_and_a_failure_leaves_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fissix", reason="needs the extra python2")
    file = tmp_path / "a.py"
    file.write_text("print 1\n")
    file.chmod(0o750)
    found = conversion_of(file)
    assert found is not None

    def fail(*_: object, **__: object) -> None:
        raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        with pytest.raises(OSError, match=r"^$"):
            found.write()
    assert file.read_text() == "print 1\n"
    assert {path.name for path in tmp_path.iterdir()} == {"a.py", "a.py.python2"}
    found.write()
    assert file.read_text() == "print(1)\n"
    assert [path.stat().st_mode & 0o777 for path in (file, found.kept)] == [0o750, 0o750]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_the_line_ends_stay(tmp_path: Path, end: bytes) -> None:
    pytest.importorskip("fissix", reason="needs the extra python2")
    path = tmp_path / "old.py"
    path.write_bytes(b"# text" + end + b"print 'x'" + end)
    found = conversion_of(path)
    assert found is not None
    found.write()
    assert path.read_bytes() == b"# text" + end + b"print('x')" + end


def test_mixed_line_ends_become_those_of_most_lines(tmp_path: Path) -> None:
    pytest.importorskip("fissix", reason="needs the extra python2")
    path = tmp_path / "old.py"
    path.write_bytes(b"# a\r\n# b\nprint 'x'\r\n")
    found = conversion_of(path)
    assert found is not None
    found.write()
    assert path.read_bytes() == b"# a\r\n# b\r\nprint('x')\r\n"
