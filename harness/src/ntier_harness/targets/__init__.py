"""Places to run: each module provides nodes and their limits; everything else is the same on all of them."""
