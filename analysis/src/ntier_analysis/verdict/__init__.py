"""What limits the throughput: saturation, verdict per trial and per sweep, with its evidence."""
