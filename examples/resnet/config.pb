# A ResNet that is fine-tuned with images, by one process for each GPU of a trial.
language: PYTHON
name:     "resnet"
launcher: "torchrun"
pruner:   "median"

variable { name: "lr"       type: FLOAT  min: 0.003  max: 0.3   log: true }   # for 256 images a step
variable { name: "batch"    type: INT    min: 16     max: 256   log: true }   # of one process
variable { name: "trained"  type: INT    min: 0      max: 4 }                 # stages before the head that learn
variable { name: "group"    type: FLOAT  min: 0.1    max: 1     log: true }   # rate of a stage, relative to the next
variable { name: "mixup"    type: FLOAT  min: 0.02   max: 1     log: true }   # 0.02: hardly any
variable { name: "decay"    type: FLOAT  min: 1e-5   max: 1e-2  log: true }
