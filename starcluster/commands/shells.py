"""``starcluster sshmaster``, ``sshnode``, ``sshinstance``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
import cloup

from starcluster.cli.login import run_ssh, run_ssh_to
from starcluster.cli.remote_command import RemoteCommand
from starcluster.cluster.cluster import Cluster, find
from starcluster.errors import ClusterError
from starcluster.model import MASTER

if TYPE_CHECKING:
    from starcluster.cli.app import App

F = TypeVar("F", bound=Callable[..., Any])


def _options(command: F) -> F:
    options = (
        cloup.option(
            "-u",
            "--user",
            default="root",
            metavar="NAME",
            help="Log in as this user. Default: root.",
        ),
        cloup.option("-X", "--forward-x11", is_flag=True, help="Forward X11 windows."),
        cloup.option("-A", "--forward-agent", is_flag=True, help="Forward the SSH agent."),
        cloup.option("-t", "--pseudo-tty", is_flag=True, help="Open a terminal for a command too."),
        cloup.option(
            "-n", "--no-stdin", is_flag=True, help="Do not read standard input, e.g. in a loop."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _flags(options: dict[str, Any]) -> list[str]:
    letters = {"forward_x11": "-X", "forward_agent": "-A", "pseudo_tty": "-t", "no_stdin": "-n"}
    return [letter for name, letter in letters.items() if options[name]]


@cloup.command(cls=RemoteCommand)
@cloup.argument("tag")
@cloup.argument("command", nargs=-1)
@_options
@click.pass_obj
def sshmaster(app: App, /, tag: str, command: tuple[str, ...], user: str, **options: Any) -> None:
    """Log in to the master of a cluster, or run a command there.

    Options after the first word of COMMAND belong to COMMAND.

    \b
    Examples:
      starcluster sshmaster gpucluster
      starcluster sshmaster gpucluster qstat -u '*'
      starcluster sshmaster -u sgeadmin gpucluster 'qsub -l gpu=1 job.sh'
      starcluster sshmaster -u sgeadmin gpucluster 'qsub -l gpu=1' < job.sh
    """
    sys.exit(run_ssh(app, tag, MASTER, user=user, command=command, flags=_flags(options)))


@cloup.command(cls=RemoteCommand)
@cloup.argument("tag")
@cloup.argument("node")
@cloup.argument("command", nargs=-1)
@_options
@click.pass_obj
def sshnode(
    app: App, /, tag: str, node: str, command: tuple[str, ...], user: str, **options: Any
) -> None:
    """Log in to a node of a cluster, or run a command there.

    \b
    Examples:
      starcluster sshnode gpucluster node001
      starcluster sshnode gpucluster node001 nvidia-smi
    """
    sys.exit(run_ssh(app, tag, node, user=user, command=command, flags=_flags(options)))


@cloup.command(cls=RemoteCommand)
@cloup.argument("instance")
@cloup.argument("command", nargs=-1)
@_options
@click.pass_obj
def sshinstance(
    app: App, /, instance: str, command: tuple[str, ...], user: str, **options: Any
) -> None:
    """Log in to an instance of a cluster by its id, or run a command there.

    \b
    Examples:
      starcluster sshinstance i-0123456789abcdef0
      starcluster sshinstance i-0123456789abcdef0 'tail /var/log/cloud-init-output.log'
    """
    found = app.ec2.instance(instance)
    if not found.cluster:
        raise ClusterError(
            f"cannot verify the host key of {instance}: it does not belong to a cluster",
            f"Log in with ssh: ssh -i KEY {user}@{found.public_ip or found.private_ip}",
        )
    cluster: Cluster = find(app.ec2, app.config, found.cluster)
    sys.exit(run_ssh_to(cluster, found, user, command, _flags(options)))
