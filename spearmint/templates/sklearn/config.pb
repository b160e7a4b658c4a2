# Variables and options: docs/reference/config.rst, or spearmint run --help.
language: PYTHON
name:     "train"        # main(job_id, params) of train.py

variable { name: "C"      type: FLOAT  min: 0.001   max: 1000  log: true }
variable { name: "gamma"  type: FLOAT  min: 0.0001  max: 1     log: true }
# A variable that only some trials have: add, for example,  when: "scale=standard"
variable { name: "scale"  type: ENUM   options: "none"  options: "standard" }
