"""Read, check and edit the config file."""
