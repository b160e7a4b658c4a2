# Variables and options: docs/reference/config.rst, or spearmint run --help.
language: PYTHON
name:     "train"        # main(job_id, params) of train.py
pruner:   "median"       # stops a trial early if the losses that it reports are poor

variable { name: "lr"       type: FLOAT  min: 0.0001  max: 0.3  log: true }
variable { name: "units"    type: INT    min: 8       max: 256  log: true }
variable { name: "dropout"  type: FLOAT  min: 0       max: 0.5 }
