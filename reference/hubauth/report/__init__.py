"""What people get to see: made safe to look at, whoever wrote it."""
