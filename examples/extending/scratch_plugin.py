"""A directory for everybody on each node, as a plugin of starcluster."""

from starcluster.clustersetup import DefaultClusterSetup


class Scratch(DefaultClusterSetup):
    """Make a directory that every user can write to."""

    def __init__(self, path="/scratch"):
        """Take the arguments of the plugin's section in the config."""
        super().__init__()
        self.path = path

    def make(self, node):
        """Make it on one node; again, nothing changes."""
        if not node.ssh.isdir(self.path):
            node.ssh.makedirs(self.path)
        node.ssh.chmod(0o1777, self.path)

    def run(self, nodes, master, user, user_shell, volumes):
        """Set up a new cluster."""
        self.pool.map(self.make, nodes)

    def on_add_node(self, node, nodes, master, user, user_shell, volumes):
        """Set up a node that joins."""
        self.make(node)
