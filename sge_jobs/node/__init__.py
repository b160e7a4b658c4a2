"""What runs on an execution host: the starter of every job, the load sensor, the GPU self-test.

These files run under Python 3.9 and later with ``-I -S``. The starter runs before every job of a
cell, so every millisecond of its imports counts: no dataclasses, typing, re, json, subprocess.
"""
