"""Find the GPUs of a host, their health, and how many of them jobs can request."""
