"""Programs of an execution host: the starter of every job, the load sensor, the GPU self-test.

These files run under Python 3.9 and later with ``-I -S``. The starter runs before every job of a
cell, so it must import quickly: no dataclasses, typing, re, json or subprocess.
"""
