"""Recognise Python 2 and convert it with fissix, a fork of lib2to3.

``starcluster convertplugin`` and ``spearmint convert`` share it.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import io
import re
import shutil
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starmint import extra_command

__all__ = [
    "METHOD_ERROR", "NAME_ERROR", "OLD_MODULES", "Conversion", "ConversionError", "MissingFissix",
    "conversion_of", "converted", "is_old_line", "is_python3",
]  # fmt: skip

OLD_MODULES = frozenset(
    [
        "BaseHTTPServer", "ConfigParser", "Cookie", "HTMLParser", "Queue", "SocketServer",
        "StringIO", "Tkinter", "UserDict", "__builtin__", "cPickle", "cStringIO", "commands",
        "httplib", "md5", "sets", "sha", "thread", "urllib2", "urlparse", "xmlrpclib",
    ]
)  # fmt: skip
_NAMES = "basestring|file|long|raw_input|reduce|unichr|unicode|xrange"
_METHODS = "has_key|iteritems|iterkeys|itervalues|viewitems|viewkeys|viewvalues"
NAME_ERROR = re.compile(rf"name '({_NAMES})' is not defined")
METHOD_ERROR = re.compile(rf"'dict' object has no attribute '({_METHODS})'")
_OLD_LINE = re.compile(
    r"^\s*(print|exec)\s+[^(=\s.,)]|^\s*print\s*(>>|\(.*\)\s*[,%])|^\s*except\s[^:]+,\s*\w+\s*:"
    r"|^\s*raise\s+[\w.]+\s*,|<>|`|(?<![\w.])0[0-7]+\b|\bur['\"]"
)


class ConversionError(Exception):
    """A file cannot be converted.

    Args:
        what: What is wrong, with file and line.
        fix: What to do.
    """

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.what, self.fix = what, fix


class MissingFissix(ConversionError):
    """The package fissix is not installed."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """A file in Python 2 and its text in Python 3.

    Attributes:
        path: The file.
        old, new: Its text now, and in Python 3.
        encoding: The encoding that Python 3 reads the file in.
        newline: How the lines of the file end.
    """

    path: Path
    old: str
    new: str
    encoding: str
    newline: str = "\n"

    @property
    def kept(self) -> Path:
        """The file that keeps the old text."""
        return self.path.with_name(f"{self.path.name}.python2")

    def diff(self) -> Iterator[str]:
        """Yield the lines of a unified diff."""
        old, new = self.old.splitlines(), self.new.splitlines()
        return difflib.unified_diff(old, new, str(self.kept), str(self.path), lineterm="")

    def write(self) -> None:
        """Write the new text, whole or not at all; the old file stays in ``kept``."""
        shutil.copy2(self.path, self.kept)
        target = self.path.resolve()  # a link stays a link
        part = target.with_name(f".{target.name}.part")
        try:
            part.write_text(self.new, encoding=self.encoding, newline=self.newline)
            shutil.copymode(target, part)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)


def conversion_of(path: Path) -> Conversion | None:
    """Return how to convert a file; None if it is Python 3 or nothing is to convert.

    Raises:
        ConversionError: It cannot be converted, or an earlier copy of its old text exists.
        OSError: It cannot be read.
    """
    text, encoding, newline = _read(path)
    if is_python3(text, str(path)):
        return None
    found = Conversion(path, text, converted(text, str(path)), encoding, newline)
    if found.new == text:
        return None
    if found.kept.exists():
        raise ConversionError(
            f"{found.kept} already exists", "Rename or remove it; nothing was changed."
        )
    return found


def _read(path: Path) -> tuple[str, str, str]:
    """Return the text of a file, the encoding to write it in, and the end of its lines.

    In a file with different line ends, that of most lines.
    """
    data = path.read_bytes()
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except (SyntaxError, LookupError, UnicodeError):
        # Python 2 reads a file without a coding line so; Python 3 reads it as UTF-8.
        text, encoding = data.decode("latin-1"), "utf-8"
    windows = text.count("\r\n")
    ends = {"\n": text.count("\n") - windows, "\r\n": windows, "\r": text.count("\r") - windows}
    newline = max(ends, key=lambda end: ends[end])
    return io.StringIO(text, newline=None).read(), encoding, newline


def converted(text: str, name: str) -> str:
    """Return the source text of a module in Python 3; the same text if nothing is to convert.

    In a text that compiles, ``print(...)`` and ``input(...)`` stay as they are.

    Raises:
        MissingFissix: fissix is not installed.
        ConversionError: ``text`` is neither Python 2 nor Python 3, or cannot be converted.
    """
    refactor = _fissix()
    fixers = refactor.get_fixers_from_package("fissix.fixes")
    options = {}
    if _tree(text, name):
        fixers = [fixer for fixer in fixers if not fixer.endswith(("fix_print", "fix_input"))]
        options = {"print_function": True}
    source = text if text.endswith("\n") else f"{text}\n"
    try:
        new = str(refactor.RefactoringTool(fixers, options).refactor_string(source, name))
    except Exception as error:
        # fissix raises classes of its parser and of its tokenizer.
        raise ConversionError(f"{name} is not Python 2: {error}", "Correct the file.") from error
    try:
        compile(new, name, "exec", dont_inherit=True)
    except SyntaxError as error:
        what = f"{name}, line {error.lineno}: fissix cannot convert it: {error.msg}"
        raise ConversionError(what, "Convert this line by hand.") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise ConversionError(f"{name} cannot be compiled: {error}", "Correct the file.") from error
    return new if new != source else text


def is_python3(text: str, name: str) -> bool:
    """Return whether ``text`` compiles, and imports and calls nothing of Python 2 only."""
    try:
        tree = _tree(text, name)
    except (RecursionError, MemoryError):
        return True  # too deep to look into: Python 2 is not shown
    if tree is None:
        return False
    imported, bound = _imported(tree), _bound(tree)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return not (
        OLD_MODULES & imported
        or any(_is_old_name(call, bound) for call in calls)
        or ("pandas" not in imported and any(_is_old_method(call, bound) for call in calls))
    )


def _tree(text: str, name: str) -> ast.Module | None:
    """Return the tree of a text that compiles."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text, name)
            compile(tree, name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    return tree


def _imported(tree: ast.AST) -> set[str]:
    """Return the modules that are imported, except where the import may fail (``try``)."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
        elif not isinstance(node, ast.Try):
            found |= _imported(node)
    return found


def _bound(tree: ast.AST) -> set[str]:
    """Return the names that are imported, defined or assigned anywhere."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def _is_old_name(call: ast.Call, bound: set[str]) -> bool:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    return name in _NAMES.split("|") and name not in bound


def _is_old_method(call: ast.Call, bound: set[str]) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    arguments = 1 if name == "has_key" else 0  # six.iteritems(x) has one
    return name in _METHODS.split("|") and name not in bound and len(call.args) == arguments


def is_old_line(line: str) -> bool:
    """Return whether a line that is a syntax error in Python 3 looks like Python 2."""
    return _OLD_LINE.search(line) is not None


def _fissix() -> Any:
    try:
        return importlib.import_module("fissix.refactor")
    except ImportError as error:
        raise MissingFissix(
            "converting Python 2 requires the package fissix",
            f"Install it: {extra_command('python2')}",
        ) from error
