"""One file for each kind of command."""
