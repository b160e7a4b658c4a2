"""Turn booted instances into a cluster: names, user, shared home, Grid Engine, plugins.

All nodes at once; a node that fails is left out, named, and takes no jobs. Running it again goes
on where it failed, and changes nothing on nodes that are well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from starcluster.config.template import Template
from starcluster.errors import SetupError, StarClusterError
from starcluster.logger import log
from starcluster.node.node import Node
from starcluster.setup import steps
from starcluster.setup.hooks import LoadedPlugin, call, hook_arguments
from starcluster.setup.parallel import on_all

__all__ = ["SetupResult", "add_nodes", "remove_nodes", "run_hook", "set_up"]

Progress = Callable[[str, str], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupResult:
    """How a set-up ended.

    Attributes:
        ready: Aliases of the nodes that take jobs.
        failed: Why the others do not, by alias.
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
    """Set up a cluster; the queue of each node is enabled last, after the plugins.

    Args:
        nodes: All of them; one is the master.
        progress: Called with an alias and what starts now.

    Raises:
        SetupError: The master cannot be used.
        PluginError: A plugin failed as a whole; no node takes jobs.
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
    """Set up ``new`` nodes of a cluster that has ``nodes``, the master among them.

    Raises as :func:`set_up`; the result has the new nodes only.
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
    """Make a cluster forget nodes that are about to go; their jobs run again elsewhere.

    The nodes themselves are not asked: they may be gone already, and a plugin that fails for that
    is only logged. Plugins are called in reverse.
    """
    master = _master(nodes)
    remaining = [node for node in nodes if node not in removed]
    aliases = [node.alias for node in removed]
    if not template.disable_queue:
        steps.disable(master, aliases)
    for node in removed:
        progress(node.alias, "plugins")
        for plugin in reversed(plugins):
            try:
                call(plugin, "on_remove_node", node, nodes, *hook_arguments(master, template))
            except StarClusterError as error:
                log.error("%s: %s", node.alias, error.what)
    for alias in aliases:
        progress(alias, "leaving")
    if not template.disable_queue:
        steps.forget(master, aliases)
    workers = [node for node in remaining if node is not master]
    steps.share(master, workers, steps.SetupOptions.of(template))
    on_all(remaining, lambda node: node.remove_from_etc_hosts(removed))


def run_hook(
    hook: str, plugins: Sequence[LoadedPlugin], nodes: Sequence[Node], template: Template
) -> None:
    """Call ``run``, ``on_restart`` or ``on_shutdown`` of plugins; raises as they do."""
    ordered = plugins if hook == "run" else list(reversed(plugins))
    for plugin in ordered:
        call(plugin, hook, nodes, *hook_arguments(_master(nodes), template))


class _SetUp:
    """One run of the set-up; nodes that fail are left out of what follows."""

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
        """Bring ``new`` nodes in; ``hook`` of the plugins is called."""
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
            self._progress(alias, "ready")
        return SetupResult(ready=tuple(ready), failed=dict(self.failed))

    def _prepare(self, new: Sequence[Node]) -> dict[Node, steps.NodeFacts]:
        master, options = self.master, self.options
        adding = master not in new
        reached = self._on(new, "connecting", lambda node: node.ssh.connect())
        others = [node for node in self.nodes if node not in new or node in reached]
        if adding:
            old = [node for node in self.nodes if node not in new]
            _, unreached = on_all(old, lambda node: _introduce(node, others))
            for alias, why in unreached.items():
                log.warning("%s does not know the new nodes by name: %s", alias, why)
        done = self._on(
            list(reached),
            "packages",
            lambda node: steps.prepare(node, others, master, options),
        )
        self._require_master()
        return done

    def _join(self, prepared: Mapping[Node, steps.NodeFacts], new: Sequence[Node]) -> None:
        workers = [node for node in self.nodes if node is not self.master]
        base = self._on_master(
            "Grid Engine", lambda: steps.start_master(self.master, workers, self.options)
        )
        if self.options.queue:
            self._on_master("queue", lambda: steps.register(self.master, prepared))
        joined = self._on(
            list(prepared),
            "joining",
            lambda node: steps.join(node, self.master, base, self.options),
        )
        self._require_master()
        if self.options.queue:
            for alias in steps.without_report(self.master, joined):
                self.failed[alias] = f"{alias}: no report from its sge_execd"
            self._leave_out(self.failed)

    def _plugins(self, hook: str, new: Sequence[Node]) -> None:
        for plugin in self.plugins:
            if hook == "run":
                healthy = self._healthy(self.nodes)
                self._report(healthy, plugin.name)
                self._call(plugin, hook, healthy)
            else:
                for node in self._healthy(new):
                    self._report([node], plugin.name)
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
        """Let no jobs start on nodes that failed, also where they took jobs before."""
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


def _introduce(node: Node, others: Sequence[Node]) -> None:
    node.add_to_etc_hosts(others)
    steps.know_hosts(node, others)


def _master(nodes: Sequence[Node]) -> Node:
    for node in nodes:
        if node.is_master():
            return node
    raise SetupError("there is no master among the nodes")


def _unusable(master: Node, why: str, failed: Mapping[str, str]) -> SetupError:
    return SetupError(
        f"the master cannot be used: {why}",
        "Fix this and rerun the command: it continues where it stopped.",
        failed={**failed, master.alias: why},
    )
