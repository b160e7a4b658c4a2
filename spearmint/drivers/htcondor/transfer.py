"""Jobs on hosts that do not share the experiment's directory: HTCondor transfers their files."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from spearmint.drivers.base import DriverSettings
from spearmint.drivers.htcondor.commands import ads, ask
from spearmint.drivers.htcondor.holds import UNFIT
from spearmint.drivers.htcondor.obstacles import MACHINES
from spearmint.drivers.job_setup import check_texts, setup_lines
from spearmint.drivers.queue import SubmitSpec
from spearmint.drivers.queue_commands import job_environment
from spearmint.errors import DriverError, DriverUnreachable, InputError
from spearmint.layout import Layout, TrialFolder, read_json
from spearmint.trial.environment import (
    DONE_FILE,
    REPORTS_FILE,
    RETRY_S,
    TRANSPORT_DATA,
    TRANSPORT_DONE,
    TRIAL_DIR,
)
from spearmint.trial.transport.agent import OUTPUT
from spearmint.trial.transport.boxes import data_in, pack_box
from spearmint.trial.transport.inputs import CODE, EXPERIMENT
from spearmint.trial.transport.mailroom import OUTBOX, SPEC, START, STATE, Mailroom

_MACHINE = ("Machine", "FileSystemDomain")
_OWN_COMMAND, _PROXY_COMMAND = "should_transfer_files", "want_io_proxy"
_OF_THE_SUBMIT_HOST = {"PYTHONPATH", TRIAL_DIR, REPORTS_FILE, DONE_FILE, RETRY_S}
_OF_THE_HOST = {"HOME", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "SHELL", "USER"}
_UNFIT = (
    "no Python 3.11 or later that can run the trial: --venv names one of the host, and wrappers in "
    "Python need numpy in it, functions cloudpickle"
)
_MODULES = {"PYTHON": "numpy ", "FUNCTION": "cloudpickle "}
_NO_PROXY = (
    "a host that forbids the proxy by which it fetches data (ENABLE_CHIRP_IO): "
    f"-l {_PROXY_COMMAND}=False sends data with each trial"
)
# For wrappers in Python the runner makes arrays; find_spec imports nothing.
_CHECK = (
    "import importlib.util as u, sys; "
    "sys.exit(sys.version_info < (3, 11) or not all(map(u.find_spec, sys.argv[1:])))"
)
_SCRIPT = """\
#!/bin/bash
cd -- "${{_CONDOR_SCRATCH_DIR:?}}" || exit 1
mkdir -p {outbox} && exec >>{output} 2>&1 || exit 1
trap 'cp {output} {outbox}/{start}' EXIT
export HOME="${{HOME:-$PWD}}"
"""
_PROXY = """\
[ -f "${{_CONDOR_CHIRP_CONFIG-}}" ] || {{ echo "$HOSTNAME: "{unfit} >&2; exit {status}; }}
"""
_RUN = """\
for python in {pythons}; do
    command -v -- "$python" >/dev/null && "$python" -c {check} {modules}&& break
    python=
done
if [ -z "$python" ]; then echo "$HOSTNAME: "{unfit} >&2; exit {status}; fi
export PYTHONPATH="$PWD/{code}${{PYTHONPATH:+:$PYTHONPATH}}"
exec -- "$python" -P -m spearmint.trial.transport.agent
"""


def transfer_script(spec: SubmitSpec, box: Path, *, exports: Iterable[str]) -> str:
    """Return the bash script of a job that runs in its own directory on the host.

    Args:
        spec: The job.
        box: Mailbox of the job.
        exports: Further lines that set variables.

    Raises:
        InputError: bash could not run it.
    """
    check_texts(spec)
    inherited = {k: v for k, v in job_environment().items() if k not in _OF_THE_HOST}
    own = {k: v for k, v in spec.environment.items() if k not in _OF_THE_SUBMIT_HOST}
    variables = {**inherited, **own, TRANSPORT_DONE: spec.environment.get(DONE_FILE, "")}
    data = data_in(box)
    if data is not None:
        variables[TRANSPORT_DATA] = data.name
    lines = [_SCRIPT.format(outbox=OUTBOX, output=OUTPUT, start=START).rstrip()]
    lines += [*exports, *(f"export {k}={shlex.quote(v)}" for k, v in variables.items())]
    venv = spec.resources.venv
    if venv is not None:
        missing = shlex.quote(f"{_UNFIT}; {venv} is missing")
        lines.append(f"[ -d {shlex.quote(str(venv))} ] || {{ echo {missing}; exit {UNFIT}; }}")
    if data is not None:
        lines.append(_PROXY.format(unfit=shlex.quote(_NO_PROXY), status=UNFIT))
    lines += setup_lines(spec.resources, 'cd -- "$_CONDOR_SCRATCH_DIR" || exit 1')
    pythons = [str(venv / "bin" / "python")] if venv else [spec.argv[0], "python3", "python"]
    run = _RUN.format(
        pythons=shlex.join(pythons),
        check=shlex.quote(_CHECK),
        modules=_MODULES.get(_language(spec), ""),
        unfit=shlex.quote(_UNFIT),
        status=UNFIT,
        code=CODE,
    )
    return "\n".join([*lines, run])


def _language(spec: SubmitSpec) -> str:
    folder = spec.folder
    content = read_json(TrialFolder(folder).spec) if folder is not None else None
    return str((content or {}).get("language", ""))


def transfer_commands(box: Path, own: Mapping[str, str]) -> dict[str, str]:
    """Return the submit commands by which HTCondor transfers the files of a job.

    Args:
        box: Mailbox of the job.
        own: Submit commands of the user.
    """
    text = str(box)
    if re.search(r"[\r\n\0]|\$\$?\(|^\s|\s$", text):
        raise InputError(
            f"HTCondor cannot use the name of the directory {text!r}", "Rename the directory."
        )
    inputs = [SPEC, STATE, CODE, EXPERIMENT]
    inputs += [own[name] for name in ("transfer_input_files",) if own.get(name)]
    hold = [f"({own['on_exit_hold']})"] if "on_exit_hold" in own else []
    hold.append(f"ExitCode =?= {UNFIT}")
    reason, data, space = _UNFIT, data_in(box), {}
    if data is not None:
        reason = f"{_UNFIT}; or {_NO_PROXY}"
        if "request_disk" not in own:
            space = {"request_disk": f"DiskUsage + {data.stat().st_size >> 10}"}
    return {
        **space,
        "initialdir": text,
        "should_transfer_files": "YES",
        "when_to_transfer_output": "ON_EXIT_OR_EVICT",
        "transfer_input_files": ", ".join(inputs),
        "transfer_output_files": OUTBOX,
        "want_io_proxy": own.get(_PROXY_COMMAND, "True"),
        "on_exit_hold": " || ".join(hold),
        "on_exit_hold_reason": f'"{reason}"',
        "on_exit_hold_subcode": f"ifThenElse(ExitCode =?= {UNFIT}, {UNFIT}, 0)",
    }


class Transfer:
    """Decides whether the jobs of a search need file transfer, and does the submit side of it."""

    def __init__(self, settings: DriverSettings) -> None:
        self.directory = Layout(settings.directory.absolute()).transfer
        self._wanted = settings.resources.file_transfer
        requests = [request.partition("=") for request in settings.resources.requests]
        own = {name.strip().lower(): value.strip().lower() for name, _, value in requests}
        if _OWN_COMMAND in own:
            self._wanted = "no"  # the user decides
        self._has_cache = own.get(_PROXY_COMMAND) != "false"
        self._mailroom = Mailroom(self.directory)

    def is_used(self) -> bool:
        """Return whether files are transferred; ask the pool until it has another host.

        Raises:
            DriverUnreachable: The pool does not answer, or has no host yet.
        """
        if self._wanted == "auto":
            shares = self._asks_pool()
            if shares is None:
                return False  # not for ever: hosts that share no files may join
            self._wanted = "no" if shares else "yes"
        return self._wanted == "yes"

    def _asks_pool(self) -> bool | None:
        """Return whether any other host of the pool shares files; None if there is none."""
        answer = ask("condor_config_val", "FILESYSTEM_DOMAIN", "FULL_HOSTNAME")
        domain, host = [*answer.out.lower().split(), "", ""][:2]
        found = ads("condor_status", "-constraint", MACHINES, attributes=_MACHINE)
        machines = [{name: str(ad.get(name, "")).lower() for name in _MACHINE} for ad in found]
        if not machines:
            raise DriverUnreachable(
                "HTCondor's pool has no host yet, so it is unknown whether its hosts share files",
                "Start one, or say it: --file-transfer=yes or --file-transfer=no.",
            )
        others = [machine for machine in machines if machine["Machine"] != host]
        if not others:
            return None
        return any(machine["FileSystemDomain"] == domain for machine in others)

    def open_box(self, spec: SubmitSpec) -> Path:
        """Write what the host needs, and return the mailbox of the job."""
        if spec.folder is None:
            raise DriverError(f"job {spec.label} has no trial folder")
        try:
            return pack_box(
                self.directory,
                token=spec.token,
                folder=spec.folder,
                output=spec.output,
                done=spec.environment.get(DONE_FILE, ""),
                experiment=spec.directory,
                has_cache=self._has_cache,
            )
        except OSError as error:
            raise DriverError(f"cannot pack the files of {spec.label}: {error}") from error

    def receive(self, listed: Collection[str] | None) -> None:
        """Store what has arrived; raises DriverUnreachable if that fails now."""
        self._mailroom.receive(listed)
