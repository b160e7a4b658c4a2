"""Each folder has a docstring and exports its public names; help loads no cloud libraries."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import pytest

import starcluster

ROOMS = [module.name for module in pkgutil.iter_modules(starcluster.__path__) if module.ispkg]
WITHOUT_DOOR = ("commands", "plugins")  # loaded by "module:function" and by dotted name


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_says_what_it_is_for_and_exports_its_door(name: str) -> None:
    room = importlib.import_module(f"starcluster.{name}")
    assert room.__doc__ is not None
    assert room.__doc__.splitlines()[0].endswith((".", ":"))
    if name not in WITHOUT_DOOR:
        assert room.__all__
        assert all(hasattr(room, exported) for exported in room.__all__)


def test_every_room_can_be_imported_first() -> None:
    """Import each in a new process, because an import cycle fails only for some first imports."""
    code = (
        "import importlib, os, sys\n"
        "for name in sys.argv[1:]:\n"
        "    if os.fork() == 0:\n"
        "        try:\n"
        "            importlib.import_module(name)\n"
        "        except BaseException as error:\n"
        "            print(name, repr(error), flush=True)\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
    )
    names = [f"starcluster.{name}" for name in (*ROOMS, "clustersetup")]
    done = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_help_loads_neither_boto3_nor_paramiko() -> None:
    code = (
        "import sys\n"
        "from starcluster.cli.main import cli\n"
        "cli(['--help'], standalone_mode=False)\n"
        "heavy = {'boto3', 'botocore', 'paramiko', 'cryptography', 'matplotlib', 'numpy'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or None)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == ""
    assert "listclusters" in done.stdout
