run "minimal" {
  command = plan
  module {
    source = "./examples/minimal"
  }
  assert {
    condition     = length(output.nodes) == 3
    error_message = "two tiers and a client"
  }
}

run "paper_mesh" {
  command = plan
  module {
    source = "./examples/paper-mesh"
  }
  assert {
    condition     = length(output.node_counts) == 27 && output.node_counts["1/3/1/9ML"] == 15
    error_message = "27 topologies; 1/3/1/9ML has 14 nodes and a client"
  }
}
