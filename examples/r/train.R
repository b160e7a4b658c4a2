#!/usr/bin/env Rscript
# Smooth the speed and the stopping distance of cars (a data set of R) by loess; leave-one-out error.
span <- as.numeric(Sys.getenv("SPEARMINT_PARAM_span"))
degree <- as.integer(Sys.getenv("SPEARMINT_PARAM_degree"))
smooth <- loess.control(surface = "direct")
errors <- sapply(seq_len(nrow(cars)), function(i) {
  fit <- loess(dist ~ speed, cars[-i, ], span = span, degree = degree, control = smooth)
  cars$dist[i] - predict(fit, cars[i, ])
})
cat("errors:", format(range(errors)), "\n")
writeLines(format(sqrt(mean(errors^2)), digits = 17), Sys.getenv("SPEARMINT_RESULT"))
