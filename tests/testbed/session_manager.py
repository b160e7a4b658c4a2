"""Stand-ins for the AWS CLI and its plugin, whose sessions reach the sshd of the test bed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

_AWS = """
import argparse, json, os, pathlib, shutil, subprocess, sys
folder = pathlib.Path({folder!r})
with (folder / "sessions.jsonl").open("a") as log:
    print(json.dumps({{"argv": sys.argv, "key": os.environ.get("AWS_ACCESS_KEY_ID")}}), file=log)
parser = argparse.ArgumentParser()
for name in ("service", "operation", "--target", "--document-name", "--parameters", "--region",
             "--endpoint-url"):
    parser.add_argument(name)
given = parser.parse_args()
assert (given.service, given.operation) == ("ssm", "start-session")
assert given.document_name == "AWS-StartSSHSession"
node = folder / "nodes" / given.target
if (folder / "faults" / "denied").exists():
    sys.exit("An error occurred (AccessDeniedException) when calling the StartSession operation: "
             "User is not authorized to perform: ssm:StartSession")
if (folder / "faults" / "sessions").exists() or not node.exists():
    sys.exit("An error occurred (TargetNotConnected) when calling the StartSession operation: "
             + given.target + " is not connected.")
if shutil.which("session-manager-plugin") is None:
    sys.exit("SessionManagerPlugin is not found. Please refer to SessionManager Documentation")
port = given.parameters.removeprefix("portNumber=")
address = json.loads(node.read_text())["ip"]
sys.exit(subprocess.call(["session-manager-plugin", address, port]))
"""
_PLUGIN = """
import os, select, socket, sys
link = socket.create_connection((sys.argv[1], int(sys.argv[2])))
while True:
    for ready in select.select([0, link.fileno()], [], [])[0]:
        data = os.read(ready, 65536)
        if not data:
            sys.exit(0)
        view = memoryview(data)
        while ready and view:
            view = view[os.write(1, view):]
        if not ready:
            link.sendall(data)
"""
AWS, PLUGIN = "aws", "session-manager-plugin"


class SessionManagerCli:
    """The two programs in ``folder``/bin, which a test installs one by one.

    Attributes:
        path: The directory of the programs.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "bin"
        self.path.mkdir()

    def install(self, name: str) -> None:
        """Install one program."""
        text = _AWS.format(folder=str(self.folder)) if name == AWS else _PLUGIN
        program = self.path / name
        program.write_text(f"#!{sys.executable} -IS\n{text}")
        program.chmod(0o755)

    def sessions(self) -> list[dict[str, Any]]:
        """Return the command line and the access key of each session so far."""
        return [
            json.loads(line) for line in (self.folder / "sessions.jsonl").read_text().splitlines()
        ]
