# A network for images, trained by one process for each GPU of a trial.
language: PYTHON
name:     "cifar"
launcher: "torchrun"
pruner:   "median"

variable { name: "lr"      type: FLOAT  min: 0.01   max: 1     log: true }   # for 256 images a step
variable { name: "batch"   type: INT    min: 16     max: 512   log: true }   # of one process
variable { name: "width"   type: INT    min: 8      max: 64    log: true }
variable { name: "decay"   type: FLOAT  min: 1e-5   max: 1e-2  log: true }
