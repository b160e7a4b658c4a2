"""A plugin of starcluster that creates a directory for all users on each node."""

from starcluster.clustersetup import DefaultClusterSetup


class Scratch(DefaultClusterSetup):
    """Create a directory that every user can write to."""

    def __init__(self, path="/scratch"):
        """Set the arguments from the plugin's section of the config."""
        super().__init__()
        self.path = path

    def make(self, node):
        """Create the directory on a node; a second call changes nothing."""
        if not node.ssh.isdir(self.path):
            node.ssh.makedirs(self.path)
        node.ssh.chmod(0o1777, self.path)

    def run(self, nodes, master, user, user_shell, volumes):
        """Set up a new cluster."""
        self.pool.map(self.make, nodes)

    def on_add_node(self, node, nodes, master, user, user_shell, volumes):
        """Set up a new node."""
        self.make(node)
