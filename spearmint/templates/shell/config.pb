# Variables and options: docs/reference/config.rst, or spearmint run --help.
language: SHELL
name:     "train"        # the executable train.sh

variable { name: "x"     type: FLOAT  min: -3  max: 3 }
variable { name: "mode"  type: ENUM   options: "fast"  options: "exact" }
