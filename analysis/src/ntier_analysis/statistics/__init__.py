"""Statistics on plain arrays: numbers in, numbers out."""
