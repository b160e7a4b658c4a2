"""Find the GPUs of a host and report their health."""
