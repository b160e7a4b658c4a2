"""``starcluster start``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from starcluster.cli.login import run_ssh
from starcluster.cluster.lifecycle import ClusterLifecycle
from starcluster.cluster.operation import BAD_NODE
from starcluster.commands._checks import checked
from starcluster.commands._report import finish, progress
from starcluster.config.schema import start_options
from starcluster.launch import plan
from starcluster.launch.origin import Origin

if TYPE_CHECKING:
    from starcluster.cli.app import App
    from starcluster.launch.launcher import Launcher

Decorated = TypeVar("Decorated", bound=Callable[..., object])


def config_options(function: Decorated) -> Decorated:
    """Add the options that override keys of the config, as the keys declare them."""
    for key in reversed(start_options()):
        option = click.option(
            *key.flags, key.name, default=None, metavar=key.metavar, help=key.summary
        )
        function = option(function)
    return function


@click.command()
@click.argument("tag")
@click.option("-x", "--no-create", is_flag=True, help="Start the stopped cluster TAG again.")
@click.option("-o", "--create-only", is_flag=True, help="Launch the instances; set nothing up.")
@click.option("-v", "--validate-only", is_flag=True, help="Check all; launch nothing.")
@click.option("-V", "--skip-validation", is_flag=True, help="Do not ask AWS before launching.")
@click.option("--dry-run", is_flag=True, help="Print plan, price and quota; launch nothing.")
@click.option("-l", "--login-master", is_flag=True, help="Log in once it is ready.")
@click.option("-c", "--cluster-template", metavar="NAME", help="Default: default_template.")
@click.option("-d", "--description", default="", metavar="TEXT", help="Kept with the instances.")
@config_options
@click.option(
    "--on-bad-node",
    type=click.Choice(BAD_NODE),
    default=BAD_NODE[0],
    help="A node that fails is left as it is, removed, or replaced once. Default: leave.",
)
@click.pass_obj
def start(app: App, /, tag: str, on_bad_node: str, **options: Any) -> None:
    """Start a cluster TAG: launch instances, set them up, and give their GPUs to the queue.

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
        for line in described(app, launcher, quota=options["dry_run"]):
            click.echo(line)
        if options["dry_run"] or options["validate_only"]:
            click.echo("AWS would launch it. Nothing was launched.")
            return
        outcome = lifecycle.create(launcher, set_up_too=not options["create_only"])
    finish(tag, lifecycle, outcome, f"Log in: starcluster sshmaster {tag}")
    if options["login_master"]:
        sys.exit(run_ssh(app, tag, "master", user="root", command=()))


def overrides_of(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the text of each option that was given, by the key of the config."""
    given = {key.name: options[key.name] for key in start_options()}
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in given.items()
        if value is not None
    }


def described(app: App, launcher: Launcher, *, quota: bool) -> list[str]:
    """Return the plan as lines: nodes by type, price, and the quota if asked."""
    nodes = plan.whole_cluster(launcher.template)
    context = launcher.context
    lines = [f"Cluster {launcher.name} in {app.ec2.region}, template {launcher.template.name}:"]
    for batch in plan.batches(nodes):
        first = batch[0]
        names = first.alias if len(batch) == 1 else f"{first.alias} ... {batch[-1].alias}"
        kind = "spot" if first.spot else "on demand"
        image = context.images[first.image_id]
        lines.append(
            f"  {len(batch)} x {first.instance_type} {kind}, {names}, {image.name or image.id}"
        )
    lines.append(f"Price: {plan.cost(nodes, context.on_demand, context.spot)}")
    if quota:
        lines += [f"Quota: {line}" for line in _quotas(app, nodes)]
    return lines


def _quotas(app: App, nodes: tuple[plan.Planned, ...]) -> list[str]:
    facts = app.ec2.instance_types({node.instance_type for node in nodes})
    wanted: dict[tuple[str, str], int] = {}
    for node in nodes:
        found = plan.quota_of(node.instance_type, spot=node.spot)
        if found and node.instance_type in facts:
            wanted[found] = wanted.get(found, 0) + facts[node.instance_type].vcpus
    lines = []
    for (code, name), vcpus in wanted.items():
        limit = app.ec2.vcpu_quota(code)
        allowed = "not reported by AWS" if limit is None else f"{limit:g} allowed in all"
        short = " - too few" if limit is not None and vcpus > limit else ""
        lines.append(f"{vcpus} vCPUs of {name}, {allowed}{short}")
    return lines
