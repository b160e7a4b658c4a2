"""``setup_class = starcluster.plugins.xvfb.XvfbSetup``: a display without a screen."""

from __future__ import annotations

from typing import Any

from starcluster.clustersetup import DefaultClusterSetup, for_each
from starcluster.errors import ConfigError
from starcluster.node.node import Node

_PROFILE = "/etc/profile.d/xvfb.sh"
_START = """
pgrep -f "^Xvfb :$1 " >/dev/null && exit 0
setsid nohup Xvfb ":$1" -screen 0 "$2" -nolisten tcp >/var/log/xvfb.log 2>&1 </dev/null &
tries=100
until [ -S "/tmp/.X11-unix/X$1" ]; do
    tries=$((tries - 1))
    [ $tries -gt 0 ] || { tail -n 3 /var/log/xvfb.log >&2; exit 1; }
    sleep 0.1
done
"""


class XvfbSetup(DefaultClusterSetup):
    """Run Xvfb on every node, and set DISPLAY, so that programs can draw without a screen.

    Args:
        display: Number of the display. Default: 1.
        screen: Width, height and depth. Default: 1024x768x24.
    """

    def __init__(self, display: str = "1", screen: str = "1024x768x24") -> None:
        super().__init__()
        self._display, self._screen = display, screen
        if not display.isdigit():
            raise ConfigError(f"xvfb: invalid display '{display}'", "Set a number: display = 1")

    def run(self, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any) -> None:
        """Start Xvfb on all nodes."""
        for_each(nodes, self._start)

    def on_add_node(
        self, node: Any, nodes: Any, master: Any, user: Any, user_shell: Any, volumes: Any
    ) -> None:
        """Start Xvfb on the new node."""
        self._start(node)

    def _start(self, node: Node) -> None:
        if not node.ssh.which("Xvfb"):
            node.package_install("xvfb")
        node.ssh.checked(["sh", "-c", _START, "xvfb", self._display, self._screen], timeout_s=60)
        node.ssh.write_file(_PROFILE, f"export DISPLAY=:{self._display}\n")
