"""Copy a template without overwriting a file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from spearmint.errors import InputError, NotWritable, reason_of

_FOLDER = Path(__file__).parent
_SUFFIX = ".txt"  # of the wrappers, so that no tool takes them for modules of this package


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A config.pb and a wrapper that run at once.

    Attributes:
        name: Name of the template and of its folder.
        about: What it searches, in one line.
        modules: Modules that it imports, and the packages that contain them.
    """

    name: str
    about: str
    modules: Mapping[str, str]

    def missing(self) -> list[str]:
        """Return the packages that are not installed."""
        return [package for module, package in self.modules.items() if find_spec(module) is None]


TEMPLATES: Mapping[str, Template] = {
    name: Template(name=name, about=about, modules=modules)
    for name, about, modules in (
        ("pycuda_nn", "a network of pycuda_nn, on a GPU or with numpy (the default)", {}),
        ("sklearn", "a scikit-learn pipeline, by cross-validation", {"sklearn": "scikit-learn"}),
        ("xgboost", "XGBoost with early stopping", {"xgboost": "xgboost"}),
        ("pytorch", "a PyTorch network that reports its loss to a pruner", {"torch": "torch"}),
        ("shell", "any program, called by a shell script", {}),
    )
}


def copy_template(template: Template, directory: Path) -> list[Path]:
    """Write the files of ``template`` into ``directory``, which is created if necessary.

    Returns:
        The new files; config.pb is the first.

    Raises:
        InputError: A file exists already, or the directory cannot be written. No file is left.
    """
    sources = sorted(path for path in (_FOLDER / template.name).iterdir() if path.is_file())
    targets = {directory / source.name.removesuffix(_SUFFIX): source for source in sources}
    for path in targets:
        if os.path.lexists(path):
            raise InputError(
                f"{path} exists already", "Nothing was written. Name another directory."
            )
    written: list[Path] = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for path, source in targets.items():
            with path.open("x", encoding="utf-8") as file:
                written.append(path)
                file.write(source.read_text(encoding="utf-8"))
            if path.suffix == ".sh":
                path.chmod(path.stat().st_mode | 0o111)
    except OSError as error:
        for path in written:
            with contextlib.suppress(OSError):
                path.unlink()
        raise NotWritable(f"cannot write in {directory}: {reason_of(error)}") from None
    return written
