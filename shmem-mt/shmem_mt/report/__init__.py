"""What a person gets to see of runs: the page, its charts and tables, pictures, and comparisons."""
