# Find the network with the lowest validation loss on scikit-learn's handwritten digits:
#   spearmint --max-concurrent=2 --max-finished-jobs=40 examples/digits/config.pb
language: PYTHON
name:     "digits"

variable { name: "lr"         type: FLOAT  min: 0.001    max: 0.5   log: true }
variable { name: "l2"         type: FLOAT  min: 0.000001 max: 0.01  log: true }
variable { name: "momentum"   type: FLOAT  min: 0        max: 0.95 }
variable { name: "units"      type: INT    min: 16       max: 256   log: true }
variable { name: "depth"      type: INT    min: 1        max: 4 }
variable { name: "dropout"    type: FLOAT  min: 0        max: 0.5 }
variable { name: "activation" type: ENUM   options: "relu"  options: "tanh"  options: "sigmoid" }
