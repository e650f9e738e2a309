# What the target takes and hands on.

variables {
  tiers = [
    { name = "web", count = 1, role = "web", memory_floor_bytes = 268435456 },
    { name = "app", count = 1, role = "app", memory_floor_bytes = 1073741824 },
    { name = "middleware", count = 1, role = "haproxy", memory_floor_bytes = 1073741824 },
    { name = "db", count = 1, node_type = "normal", role = "postgresql", image = "postgresql-tiny", memory_floor_bytes = 1073741824 },
    { name = "client", count = 1, node_type = "client", role = "client" },
  ]
  hosts = {
    web1        = { address = "10.0.0.1", cores = 4, memory_bytes = 8000000000 }
    app1        = { address = "10.0.0.2", cores = 4, memory_bytes = 8000000000 }
    middleware1 = { address = "10.0.0.3", cores = 4, memory_bytes = 8000000000 }
    db1         = { address = "10.0.0.4", cores = 2, memory_bytes = 4000000000 }
    client1     = { address = "10.0.0.5", cores = 8, memory_bytes = 8000000000 }
  }
}

run "each_node_is_its_machine" {
  command = plan
  assert {
    condition     = { for n in output.nodes : n.name => "${n.role} ${n.address}" }["db1"] == "postgresql 10.0.0.4"
    error_message = "a node has the address of its machine and the role of its tier"
  }
  assert {
    condition     = [for n in output.nodes : n.image if n.tier == "db"] == ["postgresql-tiny"]
    error_message = "a database node names its data"
  }
  assert {
    condition     = alltrue([for n in output.nodes : n.cpu_cores == null && n.cores >= 2])
    error_message = "no quota, but the machine's cores"
  }
}

run "a_node_without_a_machine" {
  command = plan
  variables {
    tiers = [
      { name = "web", count = 1, role = "web", memory_floor_bytes = 268435456 },
      { name = "app", count = 1, role = "app", memory_floor_bytes = 1073741824 },
      { name = "middleware", count = 1, role = "haproxy", memory_floor_bytes = 1073741824 },
      { name = "db", count = 2, node_type = "normal", role = "postgresql", image = "postgresql-tiny", memory_floor_bytes = 1073741824 },
      { name = "client", count = 1, node_type = "client", role = "client" },
    ]
  }
  expect_failures = [output.nodes]
}

run "another_topology_than_the_machines_are_for" {
  command = plan
  variables {
    tiers = [
      { name = "web", count = 2, role = "web", memory_floor_bytes = 268435456 },
      { name = "app", count = 1, role = "app", memory_floor_bytes = 1073741824 },
      { name = "middleware", count = 1, role = "haproxy", memory_floor_bytes = 1073741824 },
      { name = "db", count = 1, node_type = "normal", role = "postgresql", image = "postgresql-tiny", memory_floor_bytes = 1073741824 },
      { name = "client", count = 1, node_type = "client", role = "client" },
    ]
  }
  expect_failures = [output.nodes]
}

run "another_scale" {
  command = plan
  variables { scale = 0.2 }
  expect_failures = [var.scale]
}
