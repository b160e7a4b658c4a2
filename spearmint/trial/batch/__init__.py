"""Several trials in one job: what ``main_batch`` receives, and the results one by one."""
