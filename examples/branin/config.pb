# The first example of the original Spearmint: the Branin function on the unit square.
# Its minimum is 0.397887.
language: PYTHON
name:     "branin"

variable {
  name: "X"
  type: FLOAT
  size: 2
  min:  0
  max:  1
}
