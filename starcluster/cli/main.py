"""Entry point of the ``starcluster`` command; it turns errors into exit codes."""

from __future__ import annotations

import contextlib
import importlib
import logging
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import cloup
from cloup.formatting import HelpSection

from starcluster.cli.app import App
from starcluster.cli.signals import exit_code_of, interrupted, like_ctrl_c
from starcluster.errors import InputError, StarClusterError, did_you_mean
from starcluster.original import command_of
from starmint.streams import help_width, open_closed_streams

log = logging.getLogger("starcluster")

# The module and function of each command. A module is imported only when its command is used,
# because some take a second to import.
SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Clusters": {
        "start": "starcluster.commands.start:start",
        "stop": "starcluster.commands.clusters:stop",
        "restart": "starcluster.commands.clusters:restart",
        "terminate": "starcluster.commands.clusters:terminate",
        "listclusters": "starcluster.commands.listclusters:listclusters",
        "cost": "starcluster.commands.cost:cost",
    },
    "Log in and copy files": {
        "sshmaster": "starcluster.commands.shells:sshmaster",
        "sshnode": "starcluster.commands.shells:sshnode",
        "sshinstance": "starcluster.commands.shells:sshinstance",
        "put": "starcluster.commands.files:put",
        "get": "starcluster.commands.files:get",
        "allow": "starcluster.commands.allow:allow",
    },
    "Nodes": {
        "addnode": "starcluster.commands.resize:addnode",
        "removenode": "starcluster.commands.resize:removenode",
        "loadbalance": "starcluster.commands.loadbalance:loadbalance",
        "status": "starcluster.commands.status:status",
        "runplugin": "starcluster.commands.runplugin:runplugin",
        "convertplugin": "starcluster.commands.convertplugin:convertplugin",
    },
    "Images and volumes": {
        "listimages": "starcluster.commands.images:listimages",
        "ebsimage": "starcluster.commands.images:ebsimage",
        "removeimage": "starcluster.commands.removeimage:removeimage",
        "createvolume": "starcluster.commands.volumes:createvolume",
        "listvolumes": "starcluster.commands.volumes:listvolumes",
        "resizevolume": "starcluster.commands.volumes:resizevolume",
        "removevolume": "starcluster.commands.volumes:removevolume",
    },
    "Key pairs": {
        "createkey": "starcluster.commands.keys:createkey",
        "listkeypairs": "starcluster.commands.keys:listkeypairs",
        "removekey": "starcluster.commands.keys:removekey",
    },
    "Account, regions and prices": {
        "prices": "starcluster.commands.prices:prices",
        "listinstances": "starcluster.commands.instances:listinstances",
        "showconsole": "starcluster.commands.instances:showconsole",
        "listspots": "starcluster.commands.instances:listspots",
        "spothistory": "starcluster.commands.spothistory:spothistory",
        "listregions": "starcluster.commands.places:listregions",
        "listzones": "starcluster.commands.places:listzones",
    },
    "Help": {
        "help": "starcluster.commands.help:help_",
        "completion": "starcluster.commands.help:completion",
    },
}
"""The sections of ``starcluster --help``, each with its commands."""
COMMANDS: Mapping[str, str] = {
    name: place for section in SECTIONS.values() for name, place in section.items()
}
ALIASES: Mapping[str, str] = {
    "reboot": "restart",
    "lc": "listclusters",
    "sm": "sshmaster",
    "sn": "sshnode",
    "si": "sshinstance",
    "an": "addnode",
    "rn": "removenode",
    "bal": "loadbalance",
    "balance": "loadbalance",
    "rp": "runplugin",
    "ck": "createkey",
    "rk": "removekey",
    "lk": "listkeypairs",
    "shi": "spothistory",
    "lsi": "listinstances",
    "ls": "listspots",
    "lr": "listregions",
    "lz": "listzones",
    "lv": "listvolumes",
    "li": "listimages",
    "eimg": "ebsimage",
    "ri": "removeimage",
    "sc": "showconsole",
    "cv": "createvolume",
    "res": "resizevolume",
    "rv": "removevolume",
}


class Commands(cloup.Group):
    """Commands by name or alias, imported on use; a wrong name gets a suggestion."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in alphabetical order."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name or alias."""
        name = ALIASES.get(cmd_name, cmd_name)
        if name not in COMMANDS:
            return None
        module, _, function = COMMANDS[name].partition(":")
        command: cloup.Command = getattr(importlib.import_module(module), function)
        command.aliases = [alias for alias, target in ALIASES.items() if target == name]
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first word names, or fail with the nearest name."""
        word = args[0]
        command = self.get_command(ctx, word)
        if command is None and (original := command_of(word)) and original.replaced:
            raise InputError(f"starcluster has no command '{word}'", original.replaced)
        if command is None:
            hint = did_you_mean(word, [*COMMANDS, *ALIASES])
            ctx.fail(f"No such command '{word}'. {hint}".rstrip())
        return command.name, command, args[1:]

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; if a signal ends it, raise Interrupted with what it has changed."""
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, click.Abort) as error:
            app = ctx.obj
            raise interrupted(app.changes() if app else (), error) from error

    def list_sections(
        self, ctx: click.Context, include_default_section: bool = True
    ) -> list[cloup.Section]:
        """Return the sections of the help."""
        sections = []
        for title, names in SECTIONS.items():
            commands = {name: self.get_command(ctx, name) for name in names}
            sections.append(cloup.Section(title, {k: v for k, v in commands.items() if v}))
        return sections

    def make_commands_help_section(self, ctx: click.Context, section: cloup.Section) -> HelpSection:
        """Return a section whose rows are whole sentences, not cut to one line."""
        rows = [
            (self.format_subcommand_name(ctx, name, command), command.get_short_help_str(limit=200))
            for name, command in section.list_commands()
        ]
        return HelpSection(heading=section.title, definitions=rows)


class _Echo(logging.Handler):
    """Write log lines to the current standard error, which tests replace."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        click.echo(self.format(record), err=True)


@cloup.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
    show_subcommand_aliases=True,
)
@cloup.option("-d", "--debug", is_flag=True, help="Log each step, and show tracebacks of errors.")
@cloup.option(
    "-c",
    "--config",
    "config_path",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Read this config file. Default: $STARCLUSTER_CONFIG, otherwise ~/.starcluster/config.",
)
@cloup.option(
    "-r",
    "--region",
    default="",
    metavar="NAME",
    help="Use this AWS region. Default: aws_region_name in the config.",
)
@cloup.version_option(package_name="starmint", prog_name="starcluster")
@click.pass_context
def cli(ctx: click.Context, debug: bool, config_path: Path | None, region: str) -> None:
    """Start, use and terminate clusters of GPU machines on EC2.

    \b
    Examples:
      starcluster help
      starcluster createkey mykey -o ~/.ssh/mykey.pem --add-to-config
      starcluster start --dry-run gpucluster
    """
    if not log.handlers:
        log.addHandler(_Echo())
    log.setLevel(logging.DEBUG if debug else logging.INFO)
    log.propagate = False
    path = config_path.expanduser() if config_path else None
    ctx.obj = App(config_path=path, region=region, debug=debug)


def main() -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 invalid input, 128 + signal."""
    open_closed_streams()
    try:
        with like_ctrl_c():
            cli(prog_name="starcluster", **help_width())
    except StarClusterError as error:
        _report(error)
        sys.exit(exit_code_of(error))
    except OSError as error:
        _report(error)
        sys.exit(1)
    except KeyboardInterrupt as error:  # outside of a command
        _report(interrupted((), error))
        sys.exit(128 + signal.SIGINT)


def _report(error: Exception) -> None:
    with contextlib.suppress(OSError):  # after SIGHUP the terminal is gone
        log.debug("Traceback of the error:", exc_info=error)
        click.echo(f"Error: {error}", err=True)
