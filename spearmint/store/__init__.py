"""Store a search: Optuna studies by URL, one owner at a time, results as records."""
