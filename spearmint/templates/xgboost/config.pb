# Variables and options: docs/reference/config.rst, or spearmint run --help.
language: PYTHON
name:     "train"        # main(job_id, params) of train.py

variable { name: "learning_rate"     type: FLOAT  min: 0.001  max: 0.5  log: true }
variable { name: "max_depth"         type: INT    min: 2      max: 10 }
variable { name: "subsample"         type: FLOAT  min: 0.3    max: 1 }
variable { name: "min_child_weight"  type: FLOAT  min: 0.1    max: 20   log: true }
