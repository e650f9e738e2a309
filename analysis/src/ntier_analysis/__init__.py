"""Finds the bottleneck of a multi-tier system in what an experiment measured."""
