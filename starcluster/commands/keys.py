"""Commands about key pairs."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import click
import cloup

from starcluster.cli.app import App
from starcluster.cli.options import confirm_option, json_option
from starcluster.cli.output import say_json, sure, table
from starcluster.config.config import default_path
from starcluster.config.edit import append_section
from starcluster.config.syntax import short
from starcluster.errors import InputError, StarClusterError

KEYGEN_LIMIT_S = 30


@cloup.command()
@cloup.argument("name")
@cloup.option(
    "-o", "--output-file", type=click.Path(path_type=Path), metavar="FILE",
    help="Write the private key to this file. Default: ~/.ssh/NAME.pem.",
)  # fmt: skip
@cloup.option(
    "-i", "--import-key", type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Import this private or public key instead of creating a key. Default: create one.",
)  # fmt: skip
@cloup.option("-a", "--add-to-config", is_flag=True, help="Add a [key NAME] section to the config.")
@click.pass_obj
def createkey(
    app: App, name: str, output_file: Path | None, import_key: Path | None, add_to_config: bool
) -> None:
    """Create a key pair NAME, or import one.

    Only this machine gets the private key. The key pair has the tags of the default template.

    \b
    Examples:
      starcluster createkey mykey -o ~/.ssh/mykey.pem --add-to-config
      starcluster createkey mykey --import-key ~/.ssh/id_ed25519
    """
    if output_file and import_key:
        raise InputError(
            "--output-file cannot be combined with --import-key", "Remove one of the two options."
        )
    config_file = app.config_path or default_path()
    if add_to_config and name in app.config.keys:
        fix = "Choose another name, or omit --add-to-config."
        raise InputError(f"{short(config_file)} already has a section [key {name}]", fix)
    if import_key:
        place = _private_half(import_key.expanduser())
        public = _public_line(import_key.expanduser())
        app.ec2.import_key_pair(name, public, app.config.default_tags())
    else:
        place = (output_file or Path("~/.ssh") / f"{name}.pem").expanduser().absolute()
        _create(app, name, place)
    click.echo(f"Key pair '{name}' is in {app.ec2.region}; its private key is {short(place)}")
    if add_to_config:
        append_section(config_file, f"key {name}", {"key_location": short(place)})
        click.echo(f"Added [key {name}] to {short(config_file)}")


def _create(app: App, name: str, place: Path) -> None:
    # Create the file first: AWS does not keep the private key, so a failed write would lose it.
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        fix = "Choose another file with -o, or import this key: --import-key."
        raise InputError(f"file {short(place)} already exists", fix) from None
    try:
        _, private = app.ec2.create_key_pair(name, app.config.default_tags())
    except BaseException:
        os.close(descriptor)
        place.unlink()
        raise
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(private if private.endswith("\n") else f"{private}\n")


def _private_half(file: Path) -> Path:
    return (file.with_suffix("") if file.suffix == ".pub" else file).absolute()


def _public_line(file: Path) -> str:
    """Return the public key of a file that has a private or a public key."""
    text = file.read_text(encoding="utf-8", errors="replace").strip()
    if re.match(r"(ssh-ed25519|ssh-rsa) \S+", text):
        return text
    try:
        done = subprocess.run(
            ["ssh-keygen", "-y", "-P", "", "-f", str(file)],
            capture_output=True,
            text=True,
            timeout=KEYGEN_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StarClusterError(f"ssh-keygen cannot read {short(file)}: {error}") from error
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
        fix = "If the key has a passphrase, give its public key: FILE.pub."
        raise InputError(f"ssh-keygen cannot read the key {short(file)}: {reason[0]}", fix)
    return done.stdout.strip()


@cloup.command()
@cloup.argument("name")
@confirm_option
@click.pass_obj
def removekey(app: App, name: str, confirm: bool) -> None:
    """Remove the key pair NAME from AWS; keep the key file.

    \b
    Examples:
      starcluster removekey mykey
      starcluster -r eu-west-1 removekey mykey --confirm
    """
    app.ec2.key_pairs([name])
    sure(f"Remove key pair '{name}' from {app.ec2.region}?", confirmed=confirm)
    app.ec2.delete_key_pair(name)
    click.echo(f"Removed key pair '{name}' from {app.ec2.region}")


@cloup.command()
@json_option
@click.pass_obj
def listkeypairs(app: App, as_json: bool) -> None:
    """List the key pairs of the region, with their key files.

    \b
    Examples:
      starcluster listkeypairs
      starcluster listkeypairs --json
    """
    found = app.ec2.key_pairs()
    places = {name: short(key.location) for name, key in app.config.keys.items()}
    if as_json:
        say_json(
            [
                {
                    "name": key.name,
                    "type": key.type,
                    "fingerprint": key.fingerprint,
                    "key_location": places.get(key.name, ""),
                }
                for key in found
            ]
        )
    elif found:
        rows = [(e.name, e.type, e.fingerprint, places.get(e.name, "")) for e in found]
        click.echo(table(("NAME", "TYPE", "FINGERPRINT", "KEY_LOCATION"), rows))
    else:
        click.echo(f"No key pairs in {app.ec2.region}. Create one: starcluster createkey NAME")
