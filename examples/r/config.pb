# A trial in R: train.R gets its parameters from the environment and writes one number.
language: SHELL
name:     "train.R"

variable { name: "span"    type: FLOAT  min: 0.15  max: 1 }
variable { name: "degree"  type: ENUM   options: "1"  options: "2" }
