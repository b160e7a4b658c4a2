"""A real Grid Engine cell on the test bed: a master and hosts with declared GPUs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.testbed.fabric import Fabric, Node
from tests.waiting import until

REPOSITORY = Path(__file__).resolve().parents[2]
SGE_ROOT = "/var/lib/gridengine"
ENVIRONMENT = {"SGE_ROOT": SGE_ROOT, "SGE_CELL": "default", "SGE_ARCH": "lx-amd64"}
USER, UID = "4cells", 2401  # Grid Engine must accept a user name that starts with a digit

_BOOTSTRAP = """admin_user sgeadmin
default_domain none
ignore_fqdn true
spooling_method berkeleydb
spooling_lib libspoolb
spooling_params /var/spool/gridengine/spooldb
binary_path /usr/sbin
qmaster_spool_dir /var/spool/gridengine/qmaster
security_mode none
listener_threads 2
worker_threads 2
scheduler_threads 1
"""

# Does what the installer of the packages does, without questions.
_MASTER = """
set -e
cd /tmp
spool=/var/spool/gridengine
mkdir -p $spool/qmaster/job_scripts $spool/spooldb
chown -R sgeadmin:sgeadmin $spool $SGE_ROOT/default
share=/usr/share/gridengine
sed -e '/^DB_SPOOLING_SERVER/d' $share/default-configuration > configuration
as() { setpriv --reuid=sgeadmin --regid=sgeadmin --init-groups "$@" > /dev/null; }
export PATH=/usr/lib/gridengine:$PATH
as spoolinit berkeleydb libspoolb $spool/spooldb init
as spooldefaults configuration configuration
as spooldefaults complexes $share/util/resources/centry
as spooldefaults usersets $share/util/resources/usersets
as spooldefaults managers root sgeadmin
"""

_HOST = """hostname {name}
load_scaling NONE
complex_values NONE
user_lists NONE
xuser_lists NONE
projects NONE
xprojects NONE
usage_scaling NONE
report_variables NONE
"""


class Cell:
    """A Grid Engine cell: the first host is master, submit host and execution host.

    Attributes:
        shared: A directory with the same path on all hosts and on this machine.
        home: The home directory of the user, in ``shared``.
    """

    def __init__(
        self, hosts: int = 3, *, gpus: int = 2, slots: int = 4, setup: bool = True
    ) -> None:
        self.names = ["master", *(f"node{number:03d}" for number in range(1, hosts))]
        self.gpus, self.slots, self._setup = gpus, slots, setup
        self.shared = Path(tempfile.mkdtemp(prefix="cell-"))
        self.shared.chmod(0o755)
        self.home = self.shared / "home"
        self.fabric = Fabric(binds=[self.shared, REPOSITORY, Path(sys.base_prefix)])

    def __enter__(self) -> Cell:
        """Install and start Grid Engine; wait until every host reports load."""
        self.home.mkdir()
        os.chown(self.home, UID, UID)
        self.fabric.__enter__()
        try:
            self._bring_up()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Kill all hosts and remove all files."""
        self.fabric.__exit__()
        shutil.rmtree(self.shared, ignore_errors=True)

    @property
    def master(self) -> Node:
        """The host of the qmaster."""
        return self.fabric.nodes["master"]

    @property
    def hosts(self) -> list[Node]:
        """All hosts, the master first."""
        return list(self.fabric.nodes.values())

    def _bring_up(self) -> None:
        self.fabric.add(*self.names)
        for node in self.hosts:
            self._prepare(node)
        self.checked("sh", "-c", _MASTER)
        self.start_master()
        for name in self.names:
            self.qconf("-ah", name)
            self.qconf("-as", name)
            self.qconf_file("-Ae", _HOST.format(name=name))
        hosts = " ".join(self.names)
        self.qconf_file("-Ahgrp", f"group_name @allhosts\nhostlist {hosts}\n")
        self.qconf_file("-Aq", self._queue())
        if self._setup:
            self.checked(sys.executable, "-m", "sge_jobs", "setup", "--gpus", str(self.gpus))
        with ThreadPoolExecutor() as pool:
            list(pool.map(self.start_execd, self.hosts))
        until(lambda: self.hosts_up() == len(self.names), 30)

    def _prepare(self, node: Node) -> None:
        common = f"{SGE_ROOT}/default/common"
        node.write(f"{common}/bootstrap", _BOOTSTRAP)
        node.write(f"{common}/act_qmaster", "master\n")
        node.write("/etc/sge-gpus", f"count = {self.gpus}\n")
        profile = "".join(f"export {name}={value}\n" for name, value in ENVIRONMENT.items())
        path = f"export PATH={Path(sys.executable).parent}:$PATH\n"
        node.write("/etc/profile.d/gridengine.sh", profile + path)
        passwd = node.inside("/etc/passwd").read_text()
        node.write("/etc/passwd", f"{passwd}{USER}:x:{UID}:{UID}::{self.home}:/bin/bash\n")
        group = node.inside("/etc/group").read_text()
        node.write("/etc/group", f"{group}{USER}:x:{UID}:\n")
        node.run("mkdir", "-p", "/var/spool/gridengine/execd")
        node.run("chown", "-R", "sgeadmin:sgeadmin", "/var/spool/gridengine", f"{SGE_ROOT}/default")

    def _queue(self) -> str:
        template = self.checked("qconf", "-sq").splitlines()
        given = {
            "qname": "all.q",
            "hostlist": "@allhosts",
            "slots": str(self.slots),
            "pe_list": "NONE",
            "shell": "/bin/bash",
        }
        if not self._setup:  # otherwise sge-jobs setup disables the load threshold
            given["load_thresholds"] = "NONE"
        keys = [line.split(maxsplit=1)[0] for line in template if line.strip()]
        lines = [
            f"{key} {given[key]}" if key in given else line
            for key, line in zip(keys, filter(str.strip, template), strict=True)
        ]
        return "\n".join(lines) + "\n"

    # The daemons

    def start_master(self) -> None:
        """Start the qmaster; wait until it answers."""
        self.checked("/usr/sbin/sge_qmaster")
        until(lambda: self.run("qconf", "-sm").returncode == 0, 30, 0.1)

    def start_execd(self, node: Node) -> None:
        """Start the execution daemon of a host."""
        done = node.run("/usr/sbin/sge_execd", env=ENVIRONMENT)
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)

    def lose(self, node: Node) -> None:
        """Kill a host and all its processes."""
        node.kill()

    def boot_again(self, node: Node) -> None:
        """Boot a killed host and start its daemons."""
        node.boot()
        if node is self.master:
            self.start_master()
        self.start_execd(node)

    def kill(self, name: str, node: Node | None = None) -> None:
        """Send SIGKILL to the only process whose command line contains ``name``."""
        os.kill((node or self.master).process(name), signal.SIGKILL)

    # Commands on the master

    def enter(self, argv: Sequence[str], *, uid: int = 0, node: Node | None = None) -> list[str]:
        """Return the command line that runs ``argv`` on the master, or on ``node``."""
        home = str(self.home) if uid else "/root"
        path = f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin"
        env = {**ENVIRONMENT, "HOME": home, "PATH": path, "PYTHONPATH": str(REPOSITORY)}
        env |= {"USER": USER, "LOGNAME": USER} if uid else {}
        return (node or self.master).enter(argv, uid=uid, env=env)

    def run(
        self, *argv: str, uid: int = 0, stdin: str = "", timeout_s: float = 300
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on the master, as root or as the user of ``uid``."""
        return subprocess.run(
            self.enter(argv, uid=uid),
            check=False,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )

    def checked(self, *argv: str, uid: int = 0, stdin: str = "") -> str:
        """Run a command on the master; return its output.

        Raises:
            RuntimeError: The command failed.
        """
        done = self.run(*argv, uid=uid, stdin=stdin)
        if done.returncode:
            raise RuntimeError(f"{' '.join(argv)}: {done.stdout}{done.stderr}")
        return done.stdout

    def qconf(self, *arguments: str) -> str:
        """Run qconf as a manager of the cell."""
        return self.checked("qconf", *arguments)

    def qconf_file(self, option: str, text: str) -> str:
        """Run qconf with an option that reads a file."""
        self.master.write("/tmp/qconf", text)
        return self.qconf(option, "/tmp/qconf")

    def hosts_up(self) -> int:
        """Return the number of hosts that report load."""
        rows = self.run("qhost").stdout.splitlines()[3:]
        return sum(row.split()[3] != "-" for row in rows)

    def submit(self, script: str, *options: str) -> str:
        """Submit a script as the user; return the job's number."""
        argv = ("qsub", "-terse", "-cwd", "-j", "y", "-o", "/dev/null", *options)
        return self.checked(
            "sh", "-c", f'cd {self.home} && exec "$@"', "sh", *argv, uid=UID, stdin=script
        ).strip()

    def wait_idle(self, timeout_s: float = 60) -> None:
        """Wait until the cell has no jobs."""
        listed = [""]

        def is_idle() -> bool:
            listed[0] = self.run("qstat", "-u", "*").stdout.strip()
            return not listed[0]

        try:
            until(is_idle, timeout_s, 0.1, progress=lambda: listed[0])
        except TimeoutError as error:
            raise TimeoutError(f"{error}; the cell has these jobs:\n{listed[0]}") from error


def give_examples(home: Path) -> None:
    """Copy the sources of the examples, without output of searches, for the user of the cell."""
    for name in ("branin", "digits"):
        (home / name).mkdir()
        for source in (REPOSITORY / "examples" / name).glob("*.p[by]"):
            shutil.copy(source, home / name)
        for path in (home / name, *(home / name).iterdir()):
            os.chown(path, UID, UID)


def main() -> int:
    """Open a shell on the master of a new cell; remove the cell when the shell ends."""
    started = time.monotonic()
    with Cell() as cell:
        give_examples(cell.home)
        print(
            f"A Grid Engine cell of {len(cell.names)} hosts with {cell.gpus} declared GPUs each, "
            f"ready after {time.monotonic() - started:.0f} s.\n"
            f"You are {USER} on the master; {cell.home} is shared by all hosts.\n"
            "Try: qhost; sge-jobs gpus; sge-jobs run --gpus=1 -- printenv CUDA_VISIBLE_DEVICES\n"
            "     spearmint --driver=SGE --queue-ahead=2 --max-finished-jobs=24 digits/config.pb"
        )
        # Use a new terminal, because job control does not work across pid namespaces.
        bash = "bash --rcfile /etc/profile.d/gridengine.sh -i"
        shell = ["script", "--quiet", "--return", "--command", bash, "/dev/null"]
        command = cell.enter(["sh", "-c", f'cd {cell.home} && exec "$@"', "sh", *shell], uid=UID)
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
