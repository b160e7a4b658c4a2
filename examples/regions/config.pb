# One search for each country; a later country first tries the best points of the finished ones.
language: PYTHON
name:     "demand"        # main(job_id, params) of demand.py
region:   "de"
region:   "jp"
region:   "us"
warm_start: 2

variable { name: "degree"  type: INT    min: 1     max: 9 }
variable { name: "l2"      type: FLOAT  min: 1e-6  max: 10  log: true }
