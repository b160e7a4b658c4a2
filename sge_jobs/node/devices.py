"""Close the device file of each GPU to all but root and the processes of its jobs.

Grid Engine gives each job an additional group, which its processes inherit and cannot give up. The
access control list (ACL) of a device file names the groups of the jobs that have the GPU. For a
share of a GPU it names their user in addition, as whom the MPS daemon runs.

The lists follow the files of the GPUs, and every report of the sensor compares both again. So
nothing has to be cleaned up, whatever was killed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
import stat
import struct

from sge_jobs.node.claim.record import WHOLE
from sge_jobs.node.gpus.inventory import RUN_DIRECTORY, read_text, valid_uuid, write_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sge_jobs.node.claim.lock_state import LockState

DRIVER = "/proc/driver/nvidia"
RESTRICTING, RESTRICTED = "gpu_state", "gpu_closed"
"""In a cell that restricts devices, the complex has this shortcut."""

MARK = f"{RUN_DIRECTORY}/closed"
"""File that says that devices are restricted, since the last boot."""

_ACL = "system.posix_acl_access"
_USER_OBJ, _USER, _GROUP_OBJ, _GROUP, _MASK, _OTHER = 1, 2, 4, 8, 16, 32
_READ_WRITE, _NOBODY = 6, 0xFFFFFFFF
_MAJOR, _CONTROL_MINOR = 195, 255
_PARAMETER = "NVreg_ModifyDeviceFiles"


class Devices:
    """The device files of this host's GPUs; only root can use it.

    Args:
        driver: Directory in which NVIDIA's driver describes the GPUs and itself.
        folder: Directory of the device files.
    """

    def __init__(self, driver: str = DRIVER, folder: str = "/dev") -> None:
        self._driver, self._folder = driver, folder

    def problem(self, uuids: Iterable[str]) -> str:
        """Return why the devices of these GPUs cannot be restricted; empty if they can."""
        found = self.minors()
        unknown = [uuid for uuid in uuids if uuid not in found]
        if unknown:
            return f"cannot restrict the device of {unknown[0]}: {self._driver} does not list it"
        if self._parameters().get("ModifyDeviceFiles") != "0":
            return (
                "cannot restrict devices, because nvidia-modprobe opens them for any user: write"
                f" 'options nvidia {_PARAMETER}=0' to a file in /etc/modprobe.d, then reboot"
            )
        return ""

    def minors(self) -> dict[str, int]:
        """Return the minor number of each GPU's device, by UUID."""
        found = {}
        for name in _listed(f"{self._driver}/gpus"):
            fields = _fields(f"{self._driver}/gpus/{name}/information")
            uuid, minor = fields.get("GPU UUID", ""), fields.get("Device Minor", "")
            if valid_uuid(uuid) and minor.isdigit():
                found[uuid] = int(minor)
        return found

    def _parameters(self) -> dict[str, str]:
        return _fields(f"{self._driver}/params")

    def close(self, states: Sequence[LockState]) -> None:
        """Let only the jobs in ``states`` open the GPUs; the caller holds the mutex of the locks.

        Raises:
            OSError: A list cannot be written.
        """
        minors = self.minors()
        self._create(minors.values())
        for state in states:
            if state.uuid in minors:
                self._set(f"{self._folder}/nvidia{minors[state.uuid]}", _list_for(state))

    def _set(self, path: str, wanted: bytes) -> None:
        try:
            if os.getxattr(path, _ACL) == wanted:
                return
        except OSError as error:
            if error.errno != errno.ENODATA:
                raise
        os.setxattr(path, _ACL, wanted)

    def _create(self, minors: Iterable[int]) -> None:
        """Create missing files: without its parameter, nobody else does."""
        made = {f"nvidia{minor}": (_MAJOR, minor, 0o660) for minor in minors}
        made["nvidiactl"] = (_MAJOR, _CONTROL_MINOR, 0o666)
        for line in read_text("/proc/devices").split("\n"):
            number, _, driver = line.strip().partition(" ")
            if driver == "nvidia-uvm":
                made[driver] = (int(number), 0, 0o666)
                made["nvidia-uvm-tools"] = (int(number), 1, 0o666)
        for name, (major, minor, mode) in made.items():
            path = f"{self._folder}/{name}"
            if not os.path.lexists(path):
                os.mknod(path, stat.S_IFCHR, os.makedev(major, minor))
                os.chmod(path, mode)

    def open(self) -> None:
        """Undo :meth:`close`: give the files the mode that the driver's parameters say."""
        mode = self._parameters().get("DeviceFileMode", "")
        for minor in self.minors().values():
            path = f"{self._folder}/nvidia{minor}"
            with contextlib.suppress(OSError):
                os.removexattr(path, _ACL)
                os.chmod(path, int(mode) if mode.isdigit() else 0o666)


class DeviceRule:
    """Whether this host restricts devices, and why it cannot.

    Attributes:
        wanted: Whether the cell restricts devices.
        problem: Why this host cannot restrict them; empty if it can.
    """

    def __init__(self, devices: Devices | None = None, mark: str = MARK) -> None:
        self.wanted, self.problem = False, ""
        self._devices, self._mark = devices or Devices(), mark

    @property
    def closed(self) -> bool:
        """Whether the devices are restricted."""
        return self.wanted and not self.problem

    def apply(self, states: Sequence[LockState]) -> None:
        """Restrict the devices, or undo it; the caller holds the mutex of the locks."""
        uuids = [state.uuid for state in states]
        self.problem = self._devices.problem(uuids) if self.wanted and uuids else ""
        if self.closed and uuids:
            write_whole(self._mark, "")
            try:
                self._devices.close(states)
            except OSError as error:
                self.problem = f"cannot restrict devices: {error}"
        elif not self.wanted and os.path.exists(self._mark):
            self._devices.open()
            os.unlink(self._mark)


def _list_for(state: LockState) -> bytes:
    """Return the ACL with which only root and the jobs of ``state`` can open a file."""
    groups = {record.group for record in state.holders if record.group}
    users = set()
    for record in state.holders:
        if record.share < WHOLE:
            with contextlib.suppress(KeyError):
                users.add(pwd.getpwnam(record.user).pw_uid)
    rows = [(_USER_OBJ, _READ_WRITE, _NOBODY)]
    rows += [(_USER, _READ_WRITE, user) for user in sorted(users)]
    rows.append((_GROUP_OBJ, 0, _NOBODY))
    rows += [(_GROUP, _READ_WRITE, group) for group in sorted(groups)]
    rows += [(_MASK, _READ_WRITE, _NOBODY), (_OTHER, 0, _NOBODY)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *row) for row in rows)


def _listed(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []


def _fields(path: str) -> dict[str, str]:
    try:
        lines = read_text(path).split("\n")
    except OSError:
        return {}
    pairs = (line.partition(":")[::2] for line in lines)
    return {name.strip(): value.strip() for name, value in pairs}
