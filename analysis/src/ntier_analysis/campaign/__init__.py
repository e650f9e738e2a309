"""Several topologies beside each other: cells of a map, comparisons, costs. Values in, values out but for `store`."""
