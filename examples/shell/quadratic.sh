#!/bin/sh
# (x - 1)^2, plus 1 when offset is "one".
echo "job $SPEARMINT_JOB_ID: $(cat "$SPEARMINT_PARAMS")"
awk -v x="$SPEARMINT_PARAM_x" -v offset="$SPEARMINT_PARAM_offset" \
    'BEGIN { printf "%.17g\n", (x - 1) ^ 2 + (offset == "one") }' > "$SPEARMINT_RESULT"
