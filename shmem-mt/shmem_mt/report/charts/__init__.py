"""What the charts of a report show, as plain data."""
