"""Show a search: progress, tables and the dashboard."""
