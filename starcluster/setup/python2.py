"""Plugins written for Python 2: notice them, and convert them with fissix, a fork of lib2to3."""

from __future__ import annotations

import importlib
import re
import shlex
from typing import Any

from starcluster.errors import InputError, MissingExtra

_OLD_MODULES = (
    "BaseHTTPServer ConfigParser Cookie HTMLParser Queue SocketServer StringIO Tkinter UserDict "
    "__builtin__ cPickle cStringIO commands httplib md5 sets sha thread urllib2 urlparse xmlrpclib"
)
_MODULES = frozenset(_OLD_MODULES.split())
_NAMES = "basestring file long raw_input reduce unichr unicode xrange"
_METHODS = "has_key iteritems iterkeys itervalues viewitems viewkeys viewvalues"
_NAME = re.compile(rf"name '({_NAMES.replace(' ', '|')})' is not defined")
_METHOD = re.compile(rf"'dict' object has no attribute '({_METHODS.replace(' ', '|')})'")


def fix_for(error: Exception, file: str) -> str:
    """Return how to convert the plugin ``file``; empty if the error is not of Python 2."""
    old = (
        isinstance(error, SyntaxError)
        or (isinstance(error, ModuleNotFoundError) and error.name in _MODULES)
        or (isinstance(error, NameError) and _NAME.search(str(error)))
        or (isinstance(error, AttributeError) and _METHOD.search(str(error)))
    )
    command = f"starcluster convertplugin {shlex.quote(file)}"
    return f"If it is written for Python 2, convert it: {command}" if old else ""


def converted(text: str, name: str) -> str:
    """Return the source text of a module in Python 3; the same text if nothing is to convert.

    Raises:
        MissingExtra: fissix is not installed.
        InputError: ``text`` is neither Python 2 nor Python 3, or cannot be converted.
    """
    refactor = _fissix()
    fixers = refactor.get_fixers_from_package("fissix.fixes")
    source = text if text.endswith("\n") else f"{text}\n"
    try:
        new = str(refactor.RefactoringTool(fixers).refactor_string(source, name))
    except Exception as error:
        # fissix raises classes of its parser and of its tokenizer.
        raise InputError(f"{name} is not Python 2: {error}", "Correct the file.") from error
    try:
        compile(new, name, "exec")
    except SyntaxError as error:
        what = f"{name}, line {error.lineno}: fissix cannot convert it: {error.msg}"
        raise InputError(what, "Convert this line by hand.") from error
    return new if new != source else text


def is_python3(text: str, name: str) -> bool:
    """Return whether ``text`` compiles, and imports and calls nothing of Python 2 only."""
    try:
        compile(text, name, "exec")
    except SyntaxError:
        return False
    imports = re.findall(r"^\s*(?:import|from)\s+(\w+)", text, re.MULTILINE)
    used = re.search(rf"\b({_NAMES.replace(' ', '|')})\(|\.({_METHODS.replace(' ', '|')})\(", text)
    return not _MODULES.intersection(imports) and used is None


def _fissix() -> Any:
    try:
        return importlib.import_module("fissix.refactor")
    except ImportError as error:
        raise MissingExtra(
            "converting plugins requires the package fissix",
            "Install it: pip install 'starmint[python2]'",
        ) from error
