"""One module per source: text in, frame out. An unknown line is an error naming file and line; a gap stays a gap."""
