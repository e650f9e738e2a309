"""The commands of `ntier`, by what they are about."""
