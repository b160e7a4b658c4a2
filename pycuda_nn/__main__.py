"""``python -m pycuda_nn`` is the command ``pycuda-nn``."""

import sys

from pycuda_nn.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
