"""One module per source: text in, frame out. An unknown line is an error that names file and line; a gap stays a gap."""
