# A trial in any language: the executable quadratic.sh gets its parameters from the environment
# and writes one number to the file $SPEARMINT_RESULT.
language: SHELL
name:     "quadratic"

variable { name: "x"      type: FLOAT  min: -3  max: 3 }
variable { name: "offset" type: ENUM   options: "none"  options: "one" }
