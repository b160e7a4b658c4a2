"""The commands, one module for each kind; ``cli/main.py`` lists them as ``module:function``."""
