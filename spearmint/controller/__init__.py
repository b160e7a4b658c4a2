"""Run a search: keep trials running, read their ends, stop when a limit is reached."""
