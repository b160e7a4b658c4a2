"""Write the files of a parcel into the folder of a trial, so that a kill at any instant is safe."""

from __future__ import annotations

import shutil

from spearmint.layout import TrialFolder
from spearmint.trial.transport.parcel import Parcel


def restore(parcel: Parcel, folder: TrialFolder) -> None:
    """Replace files of ``folder``; the result comes last, so that it is never there alone.

    Calling it again, also after a kill, has the same effect as one call.
    """
    folder.path.mkdir(parents=True, exist_ok=True)
    if parcel.header.has_files:
        _replace_files(parcel, folder)
    for name in sorted(parcel.names, key=lambda name: name == folder.result.name):
        parcel.extract(name, folder.path / name)


def _replace_files(parcel: Parcel, folder: TrialFolder) -> None:
    new, old = folder.path / ".files.new", folder.path / ".files.old"
    shutil.rmtree(new, ignore_errors=True)
    parcel.extract_files(new)
    if folder.files.exists():
        shutil.rmtree(old, ignore_errors=True)
        folder.files.rename(old)
    new.rename(folder.files)
    shutil.rmtree(old, ignore_errors=True)
