"""Set up nodes: users, shared folders, Grid Engine, and the hooks of plugins."""
