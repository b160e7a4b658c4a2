"""The claim of a cluster: one command at a time changes its instances."""
