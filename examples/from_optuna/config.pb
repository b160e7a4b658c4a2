# The same space as in study.py.
language: PYTHON
name:     "loss"          # main(job_id, params) of loss.py

variable { name: "lr"     type: FLOAT  min: 1e-5  max: 1    log: true }
variable { name: "units"  type: INT    min: 16    max: 512 }
