"""The commands of the original with their aliases and options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_NO_HOST = "no instance is started for a volume"
_NO_KERNEL = "instances boot the kernel of their image"
_NO_S3 = "Images are stored on EBS, not in S3 buckets"
_BUCKETS = "Use the AWS command line: aws s3 ls"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option of a command.

    Attributes:
        names: Such as ``("-s", "--cluster-size")``.
        ignored: Why the option has no effect; it is accepted with this note.
        refused: What replaces the option; it is an error.
        value: Whether it has a value; only for options that are ignored or refused.
    """

    names: tuple[str, ...]
    ignored: str = ""
    refused: str = ""
    value: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command; ``replaced`` says what replaces one that does not exist here."""

    name: str
    aliases: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    replaced: str = ""


def _same(options: str) -> tuple[Option, ...]:
    """Return options that have the same effect here, such as ``-s --size, -c --confirm``."""
    return tuple(Option(names=tuple(option.split())) for option in options.split(","))


def _ignored(why: str, *options: str) -> tuple[Option, ...]:
    """Return options without effect; a name that ends with ``=`` has a value."""
    return tuple(
        Option(names=tuple(option.rstrip("=").split()), ignored=why, value=option.endswith("="))
        for option in options
    )


_SSH = _same("-u --user, -X --forward-x11, -A --forward-agent, -t --pseudo-tty")
_VOLUME_HOST = _ignored(
    _NO_HOST,
    "-k --keypair=",
    "-H --host-instance=",
    "-d --detach-volume",
    "-s --shutdown-volume-host",
    "-i --image-id=",
    "-I --instance-type=",
)


def _command(
    names: str, options: Sequence[Option] = (), *, replaced: str = ""
) -> tuple[str, Command]:
    name, *aliases = names.split()
    made = Command(name=name, aliases=tuple(aliases), options=tuple(options), replaced=replaced)
    return name, made


COMMANDS: dict[str, Command] = dict(
    (
        _command(
            "start",
            _ignored("the intervals are fixed", "-r --refresh-interval=")
            + _same(
                "-x --no-create, -o --create-only, -v --validate-only, -V --skip-validation, "
                "-l --login-master, -q --disable-queue, -Q --enable-queue, "
                "--force-spot-master, --no-spot-master, --public-ips, --no-public-ips, "
                "-b --bid, -c --cluster-template, -d --description, -s --cluster-size, "
                "-u --cluster-user, -S --cluster-shell, -m --master-image-id, "
                "-n --node-image-id, -I --master-instance-type, -i --node-instance-type, "
                "-a --availability-zone, -k --keyname, -K --key-location, "
                "-U --userdata-script, -P --dns-prefix, -p --no-dns-prefix, -N --subnet-id"
            ),
        ),
        _command("stop", _same("-c --confirm, -f --force, -t --terminate-unstoppable")),
        _command("terminate", _same("-c --confirm, -f --force")),
        _command("restart reboot", _same("-o --reboot-only")),
        _command("listclusters lc", _same("-s --show-ssh-status")),
        _command("sshmaster sm", _SSH),
        _command("sshnode sn", _SSH),
        _command("sshinstance si", _SSH),
        _command("put", _same("-u --user, -n --node")),
        _command("get", _same("-u --user, -n --node")),
        _command(
            "addnode an",
            _same(
                "-a --alias, -n --num-nodes, -i --image-id, -I --instance-type, "
                "-z --availability-zone, -b --bid, -x --no-create"
            ),
        ),
        _command(
            "removenode rn",
            _same("-f --force, -k --keep-instance, -c --confirm, -n --num-nodes, -a --aliases"),
        ),
        _command(
            "loadbalance bal",
            _same(
                "-d --dump-stats, -D --dump-stats-file, -p --plot-stats, "
                "-P --plot-output-dir, -i --interval, -m --max_nodes, -w --job_wait_time, "
                "-a --add_nodes_per_iter, -k --kill_after, -s --stabilization_time, "
                "-l --lookback_window, -n --min_nodes, -K --kill-cluster"
            ),
        ),
        _command("runplugin rp"),
        _command("listinstances lsi", _same("-t --show-terminated")),
        _command("listspots ls", _same("-c --show-closed")),
        _command("listregions lr"),
        _command("listzones lz"),
        _command("showconsole sc"),
        _command(
            "spothistory shi",
            _same("-z --zone, -d --days, -s --start-time, -e --end-time, -p --plot"),
        ),
        _command("createkey ck", _same("-o --output-file, -i --import-key, -a --add-to-config")),
        _command("removekey rk", _same("-c --confirm")),
        _command("listkeypairs lk"),
        _command(
            "createvolume cv",
            (
                *_same("-n --name, -t --tag"),
                *_ignored(_NO_HOST, "-b --bid="),
                *_VOLUME_HOST,
                Option(
                    names=("-m", "--mkfs-cmd"),
                    value=True,
                    refused="The first cluster that mounts an empty volume creates ext4 on it. For "
                    "another file system, run mkfs on the master: starcluster sshmaster TAG",
                ),
            ),
        ),
        _command(
            "resizevolume res",
            (
                *_VOLUME_HOST,
                Option(
                    names=("-z", "--zone"),
                    value=True,
                    refused="The volume is enlarged in its zone. To move it, create a volume from "
                    "a snapshot of it: starcluster createvolume --snapshot ID SIZE ZONE",
                ),
                *_ignored("run it on the master; resizevolume prints where", "-r --resizefs-cmd="),
            ),
        ),
        _command("removevolume rv", _same("-c --confirm")),
        _command(
            "listvolumes lv",
            (
                *_same(
                    "-n --name, -v --volume-id, -s --size, -S --status, -a --attach-status, "
                    "-z --zone, -i --snapshot-id, -t --tag"
                ),
                *_ignored("all volumes that AWS lists are shown", "-d --show-deleted"),
            ),
        ),
        _command("listimages li", _same("-x --executable-by-me")),
        _command(
            "listpublic lp",
            replaced="The public images of StarCluster no longer exist. "
            "List others: starcluster listimages -o amazon 'Deep Learning Base*'",
        ),
        _command(
            "ebsimage eimg",
            (
                *_same("-d --description"),
                *_ignored("AWS describes the snapshot", "-D --snapshot-description="),
                *_ignored(_NO_KERNEL, "-k --kernel-id=", "-r --ramdisk-id="),
            ),
        ),
        _command("removeimage ri", _same("-p --pretend, -c --confirm, -k --keep-image-data")),
        _command(
            "s3image simg createimage",
            replaced=f"{_NO_S3}. Create one: starcluster ebsimage INSTANCE NAME",
        ),
        _command(
            "downloadimage di",
            replaced=f"{_NO_S3}. Export an image: aws ec2 create-store-image-task",
        ),
        _command("showimage shimg", replaced=f"{_NO_S3}. List images: starcluster listimages"),
        _command("listbuckets lb", replaced=_BUCKETS),
        _command("showbucket sb", replaced=f"{_BUCKETS} s3://BUCKET"),
        _command(
            "shell sh",
            replaced="Use Python: from starcluster.aws.ec2 import Ec2. For ipyparallel on a "
            "cluster, see the plugin starcluster.plugins.ipcluster.IPCluster.",
        ),
        _command("help"),
    )
)


def command_of(word: str) -> Command | None:
    """Return the command of the original with this name or alias."""
    return next((each for each in COMMANDS.values() if word in (each.name, *each.aliases)), None)
