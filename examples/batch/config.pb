# Tune networks for handwritten digits; eight of them train at once in each job:
#   spearmint --max-finished-jobs=32 examples/batch
language: PYTHON
name:     "networks"
batch:    8
pruner:   "median"

variable { name: "lr"       type: FLOAT  min: 0.0001    max: 0.1   log: true }
variable { name: "l2"       type: FLOAT  min: 0.000001  max: 0.01  log: true }
variable { name: "dropout"  type: FLOAT  min: 0         max: 0.6 }
