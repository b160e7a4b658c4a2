#!/bin/sh
# One trial. Each variable is in $SPEARMINT_PARAM_name, and all are in the JSON file
# $SPEARMINT_PARAMS. Write one number to the file $SPEARMINT_RESULT; the search minimizes it.
set -eu

echo "trial $SPEARMINT_JOB_ID: x=$SPEARMINT_PARAM_x mode=$SPEARMINT_PARAM_mode"  # to output/

# Replace this with your own program.
awk -v x="$SPEARMINT_PARAM_x" -v mode="$SPEARMINT_PARAM_mode" \
    'BEGIN { printf "%.17g\n", (x - 1) ^ 2 + (mode == "fast") / 10 }' > "$SPEARMINT_RESULT"
