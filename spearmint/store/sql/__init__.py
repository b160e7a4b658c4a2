"""Read and write the trials of a large study by SQL, in the tables of Optuna."""
