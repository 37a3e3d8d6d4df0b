"""Questions that take more than a chart: what order costs, and which model fits a network."""
