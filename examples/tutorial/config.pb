language: PYTHON
name:     "pumps"       # main(job_id, params) of pumps.py

variable { name: "learning_rate" type: FLOAT  min: 0.005  max: 0.5  log: true }
variable { name: "leaves"        type: INT    min: 2      max: 64   log: true }
variable { name: "min_samples"   type: INT    min: 1      max: 100  log: true }
variable { name: "loss"          type: ENUM   options: "squared_error"  options: "absolute_error" }
