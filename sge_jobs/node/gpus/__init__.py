"""Find the GPUs of a host, their health, and how many of them the cell gives to jobs."""
