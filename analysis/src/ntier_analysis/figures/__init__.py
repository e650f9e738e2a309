"""Figures: frames in, `Drawing` out. They show; they never judge."""
