"""Measuring: starts programs, reads what they print, keeps the points in a run folder."""
