"""One file for each kind of command; ``cli/main.py`` names each command as ``module:function``."""
