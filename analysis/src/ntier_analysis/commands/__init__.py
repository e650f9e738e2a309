"""The commands of `ntier-analysis`, by what they are about. Heavy imports happen inside them."""
