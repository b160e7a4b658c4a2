"""Carry the files of a trial to a host that does not share the experiment's directory, and back.

The submit side is :mod:`.mailroom`, the host's side is :mod:`.agent`; both exchange parcels.
"""
