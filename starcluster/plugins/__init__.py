"""Plugins that come with StarCluster; the config names each by its dotted name, as any other."""
