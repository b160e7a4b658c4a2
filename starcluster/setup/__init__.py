"""Set up nodes: users, shared directories, Grid Engine, and the hooks of plugins."""

from starcluster.setup.hooks import LoadedPlugin, load_plugins
from starcluster.setup.run import SetupResult, Step, add_nodes, remove_nodes, run_hook, set_up
from starcluster.setup.tools import TOOLS, install

__all__ = [
    "TOOLS",
    "LoadedPlugin",
    "SetupResult",
    "Step",
    "add_nodes",
    "install",
    "load_plugins",
    "remove_nodes",
    "run_hook",
    "set_up",
]
