"""What can be measured, and which program starts a run consists of."""
