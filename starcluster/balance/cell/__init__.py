"""Jobs and places of a Grid Engine cell, and where waiting jobs would start."""
