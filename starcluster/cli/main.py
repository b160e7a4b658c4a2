"""Entry of the ``starcluster`` command; the one place where errors become exit codes."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from starcluster.cli.app import App
from starcluster.errors import StarClusterError, did_you_mean

log = logging.getLogger("starcluster")

# Where each command is; imported when it is used, for some need a second of imports.
COMMANDS: Mapping[str, str] = {
    "start": "starcluster.commands.start:start",
    "stop": "starcluster.commands.clusters:stop",
    "terminate": "starcluster.commands.clusters:terminate",
    "restart": "starcluster.commands.clusters:restart",
    "listclusters": "starcluster.commands.clusters:listclusters",
    "sshmaster": "starcluster.commands.shells:sshmaster",
    "sshnode": "starcluster.commands.shells:sshnode",
    "sshinstance": "starcluster.commands.shells:sshinstance",
    "addnode": "starcluster.commands.resize:addnode",
    "removenode": "starcluster.commands.resize:removenode",
    "loadbalance": "starcluster.commands.loadbalance:loadbalance",
    "runplugin": "starcluster.commands.runplugin:runplugin",
    "put": "starcluster.commands.files:put",
    "get": "starcluster.commands.files:get",
    "help": "starcluster.commands.help:help_",
    "createkey": "starcluster.commands.keys:createkey",
    "removekey": "starcluster.commands.keys:removekey",
    "listkeypairs": "starcluster.commands.keys:listkeypairs",
    "listinstances": "starcluster.commands.instances:listinstances",
    "listspots": "starcluster.commands.instances:listspots",
    "showconsole": "starcluster.commands.instances:showconsole",
    "listregions": "starcluster.commands.places:listregions",
    "listzones": "starcluster.commands.places:listzones",
    "listimages": "starcluster.commands.images:listimages",
    "ebsimage": "starcluster.commands.images:ebsimage",
    "spothistory": "starcluster.commands.spothistory:spothistory",
    "createvolume": "starcluster.commands.volumes:createvolume",
    "resizevolume": "starcluster.commands.volumes:resizevolume",
    "removevolume": "starcluster.commands.volumes:removevolume",
    "listvolumes": "starcluster.commands.volumes:listvolumes",
    "completion": "starcluster.commands.help:completion",
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
    "sc": "showconsole",
    "cv": "createvolume",
    "rv": "removevolume",
}


class Commands(click.Group):
    """Commands by name or alias, imported when used; a wrong name gets the right one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in alphabetical order."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name or alias."""
        place = COMMANDS.get(ALIASES.get(cmd_name, cmd_name))
        if place is None:
            return None
        module, _, name = place.partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of the first word, or fail with the one that was meant."""
        word = args[0]
        command = self.get_command(ctx, word)
        if command is None and not word.startswith("-"):
            hint = did_you_mean(word, [*COMMANDS, *ALIASES])
            ctx.fail(f"No such command '{word}'. {hint}".rstrip())
        if command is None:
            return super().resolve_command(ctx, args)
        return command.name, command, args[1:]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each command with its aliases."""
        aliases = {name: alias for alias, name in ALIASES.items()}
        rows = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            shown = f"{name} ({aliases[name]})" if name in aliases else name
            if command is not None:
                rows.append((shown, command.get_short_help_str(limit=70)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class _Echo(logging.Handler):
    """Log lines on standard error, wherever that leads now."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        click.echo(self.format(record), err=True)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)
@click.option("-d", "--debug", is_flag=True, help="Show what is done, and where errors come from.")
@click.option(
    "-c",
    "--config",
    "config_path",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Config file; default: $STARCLUSTER_CONFIG, then ~/.starcluster/config.",
)
@click.option("-r", "--region", default="", metavar="NAME", help="AWS region, over the config's.")
@click.version_option(package_name="starmint", prog_name="starcluster")
@click.pass_context
def cli(ctx: click.Context, debug: bool, config_path: Path | None, region: str) -> None:
    """Start, use and end clusters of GPU machines on EC2.

    \b
    Examples:
      starcluster help
      starcluster createkey mykey -o ~/.ssh/mykey.pem --add-to-config
      starcluster listinstances --json
    """
    if not log.handlers:
        log.addHandler(_Echo())
    log.setLevel(logging.DEBUG if debug else logging.INFO)
    log.propagate = False
    path = config_path.expanduser() if config_path else None
    ctx.obj = App(config_path=path, region=region, debug=debug)


def main() -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 wrong input."""
    try:
        cli(prog_name="starcluster")
    except StarClusterError as error:
        log.debug("This came from:", exc_info=True)
        click.echo(f"Error: {error}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        log.debug("This came from:", exc_info=True)
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
