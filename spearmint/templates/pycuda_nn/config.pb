# Variables and options: docs/reference/config.rst, or spearmint run --help.
language: PYTHON
name:     "train"        # main(job_id, params) of train.py
# batch:  8              # train eight networks at once in each job, by main_batch(trials)

variable { name: "lr"          type: FLOAT  min: 0.0001  max: 0.3  log: true }
variable { name: "units"       type: INT    min: 8       max: 128  log: true }
variable { name: "activation"  type: ENUM   options: "relu"  options: "tanh" }
