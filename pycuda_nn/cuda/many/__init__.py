"""Train networks of one shape at once: every kernel and product of a step works on all of them."""
