"""Pack all that the host of a job needs to a new mailbox."""

from __future__ import annotations

from pathlib import Path

from spearmint.layout import TrialFolder, read_json
from spearmint.trial.transport.inputs import CODE, code_archive, experiment_archives
from spearmint.trial.transport.mailroom import Address, Mailroom


def pack_box(
    directory: Path,
    *,
    token: str,
    folder: Path,
    output: Path,
    done: str,
    experiment: Path,
    has_cache: bool,
) -> Path:
    """Return a new mailbox in ``directory`` with the trial, its files so far and the experiment.

    Args:
        directory: Directory of the mailboxes.
        token: Token of the trial.
        folder: Folder of the trial.
        output: File to which its output is appended.
        done: File that announces that the job is about to end; empty for none.
        experiment: Directory of the experiment.
        has_cache: Whether the hosts fetch large files once.

    Raises:
        InputError: The experiment is too large to send.
        OSError: A file cannot be read or written.
    """
    address = Address(
        folder=str(folder.absolute()),
        output=str(output.absolute()),
        done=done,
        key=str((read_json(TrialFolder(folder).spec) or {}).get("key", "")),
    )
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    inputs = {
        CODE: code_archive(directory),
        **experiment_archives(experiment, directory, has_cache=has_cache),
    }
    return Mailroom(directory).open_box(token, address, inputs)


def data_in(box: Path) -> Path | None:
    """Return the experiment's data in a mailbox, which hosts fetch; None if it has none."""
    return next(box.glob("data-*.zip"), None)
