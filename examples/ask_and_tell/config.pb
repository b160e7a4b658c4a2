# The search of ask_and_tell.py. The name does not refer to a file here.
language: PYTHON
name:     "paraboloid"
direction: MAXIMIZE

variable { name: "X"     type: FLOAT  size: 2  min: -2  max: 2 }
variable { name: "power" type: INT    min: 1  max: 3 }

# The first trial.
seed_point {
  param { name: "X"      dbl_val: 0  dbl_val: 0 }
  param { name: "power"  int_val: 1 }
}
