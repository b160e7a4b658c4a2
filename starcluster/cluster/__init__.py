"""A cluster from start to termination: find it, resize it, log in, make images."""
