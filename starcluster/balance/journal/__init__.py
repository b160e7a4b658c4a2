"""The record of all checks on the master, and the money in it."""
