"""A stored sweep for other programs: JSON with a published schema, OpenMetrics text, JUnit XML."""
