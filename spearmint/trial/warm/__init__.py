"""Start trials from a process that has already imported the modules of the user's code."""
