"""A balancer on the master: a systemd unit with a role that can change its cluster only."""
