"""Turn booted instances into a cluster: host names, user, shared home, Grid Engine, plugins.

All nodes are set up in parallel. A node that fails is reported, left out and gets no jobs. A rerun
continues where the setup failed, and changes nothing on healthy nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from starcluster.config.template import Template
from starcluster.errors import SetupError, StarClusterError
from starcluster.logger import log
from starcluster.node.node import Node
from starcluster.setup import efa, steps
from starcluster.setup.hooks import LoadedPlugin, call, hook_arguments
from starcluster.setup.host_key import replace_host_key
from starcluster.setup.mounts import before_users
from starcluster.setup.parallel import on_all

__all__ = ["SetupResult", "Step", "add_nodes", "remove_nodes", "run_hook", "set_up"]

Progress = Callable[[str, str], None]
T = TypeVar("T")


class Step(StrEnum):
    """The steps of the setup, as ``progress`` receives them."""

    CONNECT = "connecting"
    PREPARE = "installing packages"
    MOUNT = "mounting file systems"
    START_MASTER = "starting Grid Engine"
    REGISTER = "adding nodes to the queue"
    JOIN = "joining the cluster"
    LEAVE = "leaving the cluster"
    READY = "ready"


def plugin_step(name: str) -> str:
    """Return the step of a plugin, as ``progress`` receives it."""
    return f"running plugin {name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupResult:
    """The result of a setup.

    Attributes:
        ready: Aliases of the nodes that accept jobs.
        failed: The failures of the other nodes by alias.
    """

    ready: tuple[str, ...]
    failed: Mapping[str, str] = field(default_factory=dict)


def set_up(
    nodes: Sequence[Node],
    template: Template,
    *,
    plugins: Sequence[LoadedPlugin] = (),
    progress: Progress = lambda alias, what: None,
) -> SetupResult:
    """Set up a cluster; the queues of the nodes are enabled at the end, after the plugins.

    Args:
        nodes: All nodes, including the master.
        progress: Called with an alias and the step that starts: a :class:`Step` or a plugin.

    Raises:
        SetupError: The master failed.
        PluginError: A plugin failed as a whole; no node accepts jobs.
    """
    return _SetUp(nodes, template, plugins, progress).run(new=nodes, hook="run")


def add_nodes(
    new: Sequence[Node],
    nodes: Sequence[Node],
    template: Template,
    *,
    plugins: Sequence[LoadedPlugin] = (),
    progress: Progress = lambda alias, what: None,
) -> SetupResult:
    """Add ``new`` nodes to a cluster of ``nodes``, which include the master.

    Raises like :func:`set_up`; the result only has the new nodes.
    """
    everyone = list(dict.fromkeys([*nodes, *new]))
    return _SetUp(everyone, template, plugins, progress).run(new=new, hook="on_add_node")


def remove_nodes(
    removed: Sequence[Node],
    nodes: Sequence[Node],
    template: Template,
    *,
    plugins: Sequence[LoadedPlugin] = (),
    progress: Progress = lambda alias, what: None,
) -> None:
    """Remove nodes from a cluster before they terminate; other nodes rerun their jobs.

    The removed nodes are not contacted, because they may no longer exist. A plugin that fails for
    this reason is only logged. Plugins are called in reverse order.
    """
    master = _master(nodes)
    remaining = [node for node in nodes if node not in removed]
    aliases = [node.alias for node in removed]
    if not template.disable_queue:
        steps.disable(master, aliases)
    for node in removed:
        for plugin in reversed(plugins):
            progress(node.alias, plugin_step(plugin.name))
            try:
                call(plugin, "on_remove_node", node, nodes, *hook_arguments(master, template))
            except StarClusterError as error:
                log.error("%s: %s", node.alias, error.what)
    for alias in aliases:
        progress(alias, Step.LEAVE)
    if not template.disable_queue:
        steps.forget(master, aliases)
    workers = [node for node in remaining if node is not master]
    steps.share(master, workers, steps.SetupOptions.of(template))
    on_all(remaining, lambda node: node.remove_from_etc_hosts(removed))


def run_hook(
    hook: str, plugins: Sequence[LoadedPlugin], nodes: Sequence[Node], template: Template
) -> None:
    """Call ``run``, ``on_restart`` or ``on_shutdown`` of plugins; raises their errors."""
    ordered = plugins if hook == "run" else list(reversed(plugins))
    for plugin in ordered:
        call(plugin, hook, nodes, *hook_arguments(_master(nodes), template))


class _SetUp:
    """One run of the setup; later steps leave out nodes that failed."""

    def __init__(
        self,
        nodes: Sequence[Node],
        template: Template,
        plugins: Sequence[LoadedPlugin],
        progress: Progress,
    ) -> None:
        self.nodes, self.template, self.plugins = list(nodes), template, plugins
        self.options = steps.SetupOptions.of(template)
        self.master = _master(nodes)
        self._progress = progress
        self.failed: dict[str, str] = {}

    def run(self, *, new: Sequence[Node], hook: str) -> SetupResult:
        """Set up ``new`` nodes; call ``hook`` of the plugins."""
        self._join(self._prepare(new), list(new))
        try:
            self._plugins(hook, new)
        except StarClusterError:
            self._leave_out([node.alias for node in new])
            raise
        ready = [node.alias for node in self._healthy(new)]
        if self.options.queue:
            steps.enable(self.master, ready)
        for alias in ready:
            self._progress(alias, Step.READY)
        return SetupResult(ready=tuple(ready), failed=dict(self.failed))

    def _prepare(self, new: Sequence[Node]) -> dict[Node, steps.NodeFacts]:
        master, options = self.master, self.options
        adding = master not in new
        reached = self._on(new, Step.CONNECT, _connect)
        others = [node for node in self.nodes if node not in new or node in reached]
        if adding:
            old = [node for node in self.nodes if node not in new]
            _, unreached = on_all(old, lambda node: _introduce(node, others))
            for alias, why in unreached.items():
                log.warning("%s: cannot add the names of the new nodes: %s", alias, why)
        done = self._on(
            list(reached),
            Step.PREPARE,
            lambda node: steps.prepare(node, others, master, options),
        )
        self._require_master()
        if self.template.efa != "false":
            self._check_efa(list(done))
        if before_users(options.volumes):
            mounted = self._on(list(done), Step.MOUNT, lambda node: steps.mount(node, options))
            self._require_master()
            done = {node: done[node] for node in mounted}
        return done

    def _check_efa(self, nodes: Sequence[Node]) -> None:
        reports, failed = on_all(nodes, efa.check)
        for node, (report, problem) in reports.items():
            if report:
                self._progress(node.alias, report)
            if problem:
                log.warning("%s: %s", node.alias, problem)
        for alias, why in failed.items():
            log.warning("%s: cannot check EFA: %s", alias, why)

    def _join(self, prepared: Mapping[Node, steps.NodeFacts], new: Sequence[Node]) -> None:
        workers = [node for node in self.nodes if node is not self.master]
        base = self._on_master(
            Step.START_MASTER, lambda: steps.start_master(self.master, workers, self.options)
        )
        if self.options.queue:
            self._on_master(Step.REGISTER, lambda: steps.register(self.master, prepared))
        joined = self._on(
            list(prepared),
            Step.JOIN,
            lambda node: steps.join(node, self.master, base, self.options),
        )
        self._require_master()
        if self.options.queue:
            for alias in steps.without_report(self.master, joined):
                self.failed[alias] = "sge_execd does not report to the master"
            self._leave_out(self.failed)

    def _plugins(self, hook: str, new: Sequence[Node]) -> None:
        for plugin in self.plugins:
            if hook == "run":
                healthy = self._healthy(self.nodes)
                self._report(healthy, plugin_step(plugin.name))
                self._call(plugin, hook, healthy)
            else:
                for node in self._healthy(new):
                    self._report([node], plugin_step(plugin.name))
                    self._call(plugin, hook, node, self._healthy(self.nodes))

    def _call(self, plugin: LoadedPlugin, hook: str, *arguments: Any) -> None:
        try:
            call(plugin, hook, *arguments, *hook_arguments(self.master, self.template))
        except SetupError as error:
            unknown = set(error.failed) - {node.alias for node in self.nodes}
            if unknown:
                raise
            self.failed |= error.failed
            self._leave_out(error.failed)

    def _leave_out(self, aliases: Sequence[str] | Mapping[str, str]) -> None:
        """Disable the queues of nodes that failed, even if they accepted jobs before."""
        if aliases and self.options.queue:
            steps.disable(self.master, aliases)

    def _on(self, nodes: Sequence[Node], what: str, work: Callable[[Node], T]) -> dict[Node, T]:
        self._report(nodes, what)
        results, failed = on_all(nodes, work)
        self.failed |= failed
        return results

    def _on_master(self, what: str, work: Callable[[], T]) -> T:
        self._report([self.master], what)
        try:
            return work()
        except StarClusterError as error:
            raise _unusable(self.master, error.what, self.failed) from error

    def _require_master(self) -> None:
        why = self.failed.get(self.master.alias)
        if why is not None:
            raise _unusable(self.master, why, self.failed)

    def _healthy(self, nodes: Sequence[Node]) -> list[Node]:
        return [node for node in nodes if node.alias not in self.failed]

    def _report(self, nodes: Sequence[Node], what: str) -> None:
        for node in nodes:
            self._progress(node.alias, what)


def _connect(node: Node) -> None:
    node.ssh.connect()
    if node.has_ec2:
        replace_host_key(node)


def _introduce(node: Node, others: Sequence[Node]) -> None:
    node.add_to_etc_hosts(others)
    steps.know_hosts(node, others)


def _master(nodes: Sequence[Node]) -> Node:
    for node in nodes:
        if node.is_master():
            return node
    raise SetupError("the nodes do not include a master")


def _unusable(master: Node, why: str, failed: Mapping[str, str]) -> SetupError:
    return SetupError(
        f"the master failed: {why}",
        "Fix this and rerun the command: it continues where it stopped.",
        failed={**failed, master.alias: why},
    )
