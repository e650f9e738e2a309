"""The Parquet store: the only place, with the command line, that touches the disk."""
