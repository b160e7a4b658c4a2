# Each trial is a job of Grid Engine with a GPU of its own.
language: PYTHON
name:     "digits_gpu"    # main(job_id, params) of digits_gpu.py
pruner:   "median"
resources { gpus: 1  walltime: "30m" }

variable { name: "lr"      type: FLOAT  min: 0.001  max: 1    log: true }
variable { name: "units"   type: INT    min: 16     max: 512  log: true }
variable { name: "dropout" type: FLOAT  min: 0      max: 0.6 }
