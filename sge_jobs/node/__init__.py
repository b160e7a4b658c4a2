"""What runs on an execution host: the starter of every job, the load sensor, the GPU self-test.

These files run under Python 3.9 and later with ``-I -S``. The starter stands before every job of a
cell, so what it imports is counted in milliseconds: no dataclasses, typing, re, json, subprocess.
"""
