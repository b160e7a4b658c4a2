"""Write ``cluster.config.example`` from the declarations of the keys.

``python -m starcluster.config.example`` prints it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from starcluster.config.keys import ConfigKey, keys_of
from starcluster.config.schema import SECTIONS
from starcluster.config.volume import ONLY_OF, Kind, Volume

_WIDTH = 99

_HEAD = """\
# Config of starcluster. Copy it to ~/.starcluster/config, or run: starcluster help
# Only you may have access to the file: chmod 600 ~/.starcluster/config
#
# A comment begins with # or ; at the start of a line or after a space. A line '#key = value' is an
# example; remove the # to set the key. All other lines show the defaults, except for the required
# keys and for default_template, aws_region_name and plugins.
"""
_MORE = """\
# The keys of gpu, except for these.
[cluster large]
extends = gpu
cluster_size = 9
#spot_bid = 0.80

# HTCondor instead of Grid Engine, for spearmint --driver=HTCONDOR.
[cluster condor]
extends = gpu
disable_queue = true
plugins = nvidia_tune, project_env, condor

# Workers of Celery instead of Grid Engine, for spearmint --driver=CELERY.
[cluster workers]
extends = gpu
disable_queue = true
plugins = nvidia_tune, project_env, celery_workers

# For Slurm there is no plugin. AWS ParallelCluster starts clusters with Slurm; there, on the head
# node, use spearmint --driver=SLURM.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """A section of the example.

    Attributes:
        values: Values that differ from the default, by key.
        active: Whether the section is in force; otherwise it is a comment.
        short: Whether to show only the keys of ``values``, without help.
        only: Keys to show. Default: all.
    """

    kind: str
    name: str = ""
    intro: str
    values: Mapping[str, str] = field(default_factory=dict)
    active: bool = True
    short: bool = False
    only: Collection[str] = ()


def _keys_of(kind: Kind) -> tuple[str, ...]:
    others = [other for other in Kind if other != kind]
    return tuple(
        name for name in keys_of(Volume) if name not in others and kind in ONLY_OF.get(name, Kind)
    )


_BLOCKS = (
    _Block(
        kind="global",
        intro="Settings of the starcluster command.",
        values={"default_template": "gpu"},
    ),
    _Block(
        kind="aws info",
        intro="Optional. Without these keys the usual AWS settings apply: profiles, single "
        "sign-on, roles and the role of an instance. Environment variables override the keys: "
        "AWS_PROFILE overrides aws_profile, and so on.",
        values={"aws_region_name": "us-east-1"},
    ),
    _Block(
        kind="key",
        name="mykey",
        intro="Key pairs. Create one: starcluster createkey mykey -o ~/.ssh/mykey.pem",
    ),
    _Block(
        kind="cluster",
        name="gpu",
        intro="Cluster templates. Required: keyname, cluster_size and node_instance_type.",
        values={"plugins": "nvidia_tune, gpu_sge"},
    ),
    _Block(
        kind="volume",
        name="data",
        intro="EBS volumes, shared with all nodes. Create one: starcluster createvolume 200 "
        "us-east-1a -n data",
        values={"volume_id": "vol-0123456789abcdef0"},
        active=False,
        only=_keys_of(Kind.EBS),
    ),
    _Block(
        kind="volume",
        name="shared",
        intro="Storage that already exists and that all nodes mount: EFS (efs_id), FSx for Lustre "
        "(fsx_id) or an S3 bucket (bucket).",
        values={"efs_id": "fs-0123456789abcdef0", "mount_path": "/shared"},
        active=False,
        only=_keys_of(Kind.EFS),
    ),
    _Block(
        kind="volume",
        name="fast",
        intro="",
        values={"fsx_id": "fs-0123456789abcdef1", "mount_path": "/fast"},
        active=False,
        short=True,
    ),
    _Block(
        kind="volume",
        name="images",
        intro="",
        values={"bucket": "my-data", "mount_path": "/images"},
        active=False,
        only=("bucket", "mount_path", "prefix"),
    ),
    _Block(
        kind="permission",
        name="web",
        intro="Ports that are open to addresses outside the cluster; for SSH see ssh_from.",
        values={"cidr_ip": "203.0.113.0/24"},
        active=False,
    ),
    _Block(
        kind="plugin",
        name="nvidia_tune",
        intro="Plugins. setup_class is a dotted name, also of a file in ~/.starcluster/plugins. "
        "Other keys are arguments of the plugin.",
        values={"setup_class": "starcluster_plugins.nvidia_tune.NvidiaTune"},
        short=True,
    ),
    _Block(
        kind="plugin",
        name="gpu_sge",
        intro="",
        values={"setup_class": "starcluster_plugins.gpu_sge.GpuSge"},
        short=True,
    ),
    _Block(
        kind="plugin",
        name="project_env",
        intro="",
        values={"setup_class": "starcluster_plugins.project_env.ProjectEnv"},
        short=True,
    ),
    _Block(
        kind="plugin",
        name="condor",
        intro="",
        values={"setup_class": "starcluster.plugins.condor.CondorPlugin"},
        short=True,
    ),
    _Block(
        kind="plugin",
        name="celery_workers",
        intro="",
        values={"setup_class": "starcluster_plugins.celery_workers.CeleryWorkers"},
        short=True,
    ),
    _Block(
        kind="plugin",
        name="tools",
        intro="",
        values={
            "setup_class": "starcluster.plugins.pkginstaller.PackageInstaller",
            "packages": "htop, tmux",
        },
        active=False,
        short=True,
    ),
)


def example() -> str:
    """Return the text of ``cluster.config.example``: each key with its help and a value."""
    texts = [_HEAD]
    for block in _BLOCKS:
        texts.append("\n".join(_lines(block)) + "\n")
        if (block.kind, block.name) == ("cluster", "gpu"):
            texts.append(_MORE)
    return "\n".join(texts)


def _lines(block: _Block) -> Iterator[str]:
    yield from _comment(block.intro)
    mark = "" if block.active else "#"
    yield f"{mark}[{f'{block.kind} {block.name}'.strip()}]"
    if block.short:
        yield from (f"{mark}{name} = {value}" for name, value in block.values.items())
        return
    for key in SECTIONS[block.kind].values():
        if block.only and key.name not in block.only:
            continue
        if key.name != "extends":  # the section after it is the example
            yield from _comment(_help(key))
            line = _setting(key, block.values.get(key.name, ""))
            yield line if line.startswith("#") else mark + line


def _setting(key: ConfigKey, value: str) -> str:
    if value := value or (key.example if key.required else key.default_text):
        return f"{key.name} = {value}"
    return f"#{key.name} = {key.example}"


def _help(key: ConfigKey) -> str:
    unit = f" Unit: {key.unit}." if key.unit else ""
    default = f" Default: {key.unset}." if key.unset else ""
    return f"{key.help}{unit}{default}".replace("``", "")


def _comment(text: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False
    )


if __name__ == "__main__":
    print(example(), end="")  # noqa: T201 - its output is the file
