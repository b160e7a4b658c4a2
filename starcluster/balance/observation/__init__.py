"""Read a cluster: its queue, its instances and their cost."""
