"""``starcluster start``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click
import cloup

from starcluster.cli.login import run_ssh
from starcluster.cli.options import bad_node_option, original_options
from starcluster.cluster.lifecycle import ClusterLifecycle
from starcluster.commands._checks import checked
from starcluster.commands._quota import check_quotas
from starcluster.commands._report import finish, progress
from starcluster.config.schema import start_options
from starcluster.launch import efa, plan
from starcluster.launch.origin import Origin

if TYPE_CHECKING:
    from starcluster.cli.app import App
    from starcluster.launch.launcher import Launcher

Decorated = TypeVar("Decorated", bound=Callable[..., object])


def config_option(name: str) -> Callable[[Decorated], Decorated]:
    """Return the option that overrides the config key ``name``, as the key declares it."""
    (key,) = (key for key in start_options() if key.name == name)
    return cloup.option(
        *key.flags, key.name, default=None, metavar=key.metavar, help=key.option_help
    )


@cloup.command()
@cloup.argument("tag")
@cloup.option_group(
    "Common options",
    config_option("cluster_size"),
    config_option("node_instance_type"),
    config_option("spot_bid"),
    cloup.option(
        "-c",
        "--cluster-template",
        metavar="NAME",
        help="Use this [cluster] section of the config. "
        "Default: default_template in the config, or the only section.",
    ),
    cloup.option(
        "--dry-run",
        is_flag=True,
        help="Print the plan, the price and the quota, and launch nothing.",
    ),
    cloup.option(
        "-x",
        "--no-create",
        is_flag=True,
        help="Start the existing, stopped cluster TAG and set it up; launch nothing.",
    ),
)
@cloup.option_group(
    "What the command does",
    cloup.option(
        "-o", "--create-only", is_flag=True, help="Launch the instances, but do not set them up."
    ),
    cloup.option(
        "-v", "--validate-only", is_flag=True, help="Check everything, and launch nothing."
    ),
    cloup.option(
        "-V", "--skip-validation", is_flag=True, help="Launch without checking with AWS first."
    ),
    cloup.option(
        "-l", "--login-master", is_flag=True, help="Log in to the master when the cluster is ready."
    ),
    bad_node_option,
    config_option("tags"),
    cloup.option(
        "-d",
        "--description",
        default="",
        metavar="TEXT",
        help="Store this text with the instances; listclusters shows it. Default: empty.",
    ),
)
@cloup.option_group(
    "Instances and images",
    config_option("node_image_id"),
    config_option("master_instance_type"),
    config_option("master_image_id"),
    config_option("force_spot_master"),
    config_option("instance_profile"),
    config_option("capacity_reservation"),
)
@cloup.option_group(
    "Network",
    config_option("availability_zone"),
    config_option("subnet_id"),
    config_option("public_ips"),
    config_option("efa"),
    config_option("ssh_from"),
    config_option("dns_prefix"),
)
@cloup.option_group(
    "Keys, users and setup",
    config_option("keyname"),
    config_option("key_location"),
    config_option("cluster_user"),
    config_option("cluster_shell"),
    config_option("userdata_scripts"),
    config_option("disable_queue"),
)
@original_options("start")
@click.pass_obj
def start(app: App, /, tag: str, on_bad_node: str, **options: Any) -> None:
    """Start a cluster TAG: launch its instances and set them up.

    Its queue, Grid Engine, then runs jobs on the GPUs of all nodes.

    \b
    Examples:
      starcluster start gpucluster
      starcluster start -s 8 -b 0.40 --dry-run gpucluster
      starcluster start -x gpucluster
    """
    lifecycle = ClusterLifecycle(
        app.ec2, app.config, tag, progress=progress(), on_bad_node=on_bad_node
    )
    if options["no_create"]:
        outcome = lifecycle.start_again()
    else:
        overrides = overrides_of(options)
        template = app.config.template(options["cluster_template"], overrides)
        check = not options["skip_validation"]
        launcher = lifecycle.prepare(
            template,
            Origin(template=template.name, overrides=overrides),
            options["description"],
            check=check,
            inventory=checked(app, template, overrides) if check else None,
        )
        for line in described(app, launcher):
            click.echo(line)
        if options["dry_run"] or options["validate_only"]:
            prepaid = launcher.context.reserved.prepaid
            check_quotas(app.ec2, plan.whole_cluster(template), prepaid)
            passed = "All checks passed. " if check else ""
            click.echo(f"{passed}Nothing was launched.")
            return
        outcome = lifecycle.create(launcher, set_up_too=not options["create_only"])
    finish(tag, lifecycle, outcome, f"Log in: starcluster sshmaster {tag}")
    if options["login_master"]:
        sys.exit(run_ssh(app, tag, "master", user="root", command=()))


def overrides_of(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the text of each given option by its config key."""
    given = {key.name: options[key.name] for key in start_options()}
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in given.items()
        if value is not None
    }


def described(app: App, launcher: Launcher) -> list[str]:
    """Return the plan as lines: nodes by type, and the price."""
    nodes = plan.whole_cluster(launcher.template)
    context = launcher.context
    lines = [f"Cluster {launcher.name} in {app.ec2.region}, template {launcher.template.name}:"]
    for batch in plan.batches(nodes):
        first = batch[0]
        names = first.alias if len(batch) == 1 else f"{first.alias} ... {batch[-1].alias}"
        kind = "spot" if first.spot else "on demand"
        if context.reserved.takes(first.instance_type):
            kind = "reserved"
        image = context.images[first.image_id]
        lines.append(
            f"  {len(batch)} x {first.instance_type} {kind}, {names}, {image.name or image.id}"
        )
    lines.append(f"Price: {plan.cost(nodes, context.on_demand, context.spot)}")
    if context.spot_zones:
        lines.append(f"Zone: {context.spot_zones[0]}; the best one for spot instances now")
    types = [node.instance_type for node in nodes]
    lines += context.reserved.lines(types, datetime.now(UTC))
    lines += efa.lines(launcher.template, context.efa)
    return lines
