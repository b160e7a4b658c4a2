"""Earlier results from elsewhere, as rows, and rows as points of a search."""
