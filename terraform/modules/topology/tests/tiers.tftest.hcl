# Tiers, right and wrong. Offline: no provider, nothing is made.

variables {
  tiers = [
    { name = "web", count = 1, role = "web", image = "web", memory_floor_bytes = 268435456 },
    { name = "app", count = 1, role = "app", image = "app", memory_floor_bytes = 1073741824 },
    { name = "middleware", count = 1, role = "haproxy", image = "haproxy", memory_floor_bytes = 1073741824 },
    { name = "db", count = 1, node_type = "normal", role = "mysql", image = "mysql-small", memory_floor_bytes = 1073741824 },
    { name = "client", count = 1, node_type = "client", role = "client", image = "client" },
  ]
}

run "the_papers_thirteen_nodes" {
  command = plan
  variables {
    scale = 0.5
    tiers = [
      { name = "web", count = 1, role = "web", image = "web", memory_floor_bytes = 268435456 },
      { name = "app", count = 2, role = "app", image = "app", memory_floor_bytes = 1073741824 },
      { name = "middleware", count = 1, role = "haproxy", image = "haproxy", memory_floor_bytes = 1073741824 },
      { name = "db", count = 9, node_type = "low_cost", role = "mysql", image = "mysql-small", memory_floor_bytes = 1073741824 },
      { name = "client", count = 1, node_type = "client", role = "client", image = "client" },
    ]
  }
  assert {
    condition     = length([for n in output.nodes : n if n.tier != "client"]) == 13
    error_message = "1/2/1/9ML has 13 nodes"
  }
  assert {
    condition     = [for n in output.nodes : n.name if n.tier == "app"] == ["app1", "app2"]
    error_message = "nodes are named after their tier and number"
  }
  assert {
    condition     = alltrue([for n in output.nodes : n.node_type == "low_cost" && n.cpu_cores == 0.15 if n.tier == "db"])
    error_message = "L makes the database nodes low-cost: 30 % of a normal node"
  }
  assert {
    condition     = alltrue([for n in output.nodes : n.memory_bytes == 402653184 && n.disk_bytes_s == 10000000 && n.network_bits_s == 50000000 if n.tier == "db"])
    error_message = "low-cost nodes have less memory (but what their programs need), a slow disk and a slow network"
  }
  assert {
    condition     = [for n in output.nodes : [n.disk_bytes_s, n.network_bits_s] if n.name == "app1"] == [[null, 500000000]]
    error_message = "a normal node's disk is not limited, its network is"
  }
  assert {
    condition     = alltrue([for n in output.nodes : n.node_type == "normal" && n.cpu_cores == 0.5 if contains(["web", "app", "middleware"], n.tier)])
    error_message = "L is about the database nodes only"
  }
}

run "one_of_each" {
  command = plan
  variables {
    scale = 0.2
  }
  assert {
    condition     = [for n in output.nodes : n.name] == ["web1", "app1", "middleware1", "db1", "client1"]
    error_message = "four tiers and one client, in this order"
  }
  assert {
    condition     = [for n in output.nodes : n.address] == ["198.18.1.1", "198.18.2.1", "198.18.3.1", "198.18.4.1", "198.18.5.1"]
    error_message = "each tier has its own 256 addresses"
  }
  assert {
    condition     = output.nodes[4].cpu_cores == null && output.nodes[4].memory_bytes == null
    error_message = "the client is not limited"
  }
  assert {
    condition     = output.nodes[0].memory_bytes == 429496730 && output.nodes[3].memory_bytes == 1073741824
    error_message = "memory scales down to what the programs need at any scale"
  }
}

run "largest" {
  command = plan
  variables {
    tiers = [
      { name = "web", count = 99, role = "web", image = "web", memory_floor_bytes = 268435456 },
      { name = "app", count = 99, role = "app", image = "app", memory_floor_bytes = 1073741824 },
      { name = "middleware", count = 99, role = "haproxy", image = "haproxy", memory_floor_bytes = 1073741824 },
      { name = "db", count = 99, node_type = "normal", role = "mysql", image = "mysql-small", memory_floor_bytes = 1073741824 },
      { name = "client", count = 16, node_type = "client", role = "client", image = "client" },
    ]
  }
  assert {
    condition     = length(distinct([for n in output.nodes : n.address])) == 99 * 4 + 16
    error_message = "every node has an address of its own"
  }
}

run "role_and_image_are_those_of_the_tier" {
  command = plan
  assert {
    condition     = [for n in output.nodes : "${n.role} ${n.image}"] == ["web web", "app app", "haproxy haproxy", "mysql mysql-small", "client client"]
    error_message = "a node has the role and the image of its tier"
  }
}

run "zero" {
  command = plan
  variables {
    tiers = [{ name = "web", count = 0, role = "web" }]
  }
  expect_failures = [var.tiers]
}

run "hundred" {
  command = plan
  variables {
    tiers = [{ name = "web", count = 100, role = "web" }]
  }
  expect_failures = [var.tiers]
}

run "half_a_node" {
  command = plan
  variables {
    tiers = [{ name = "web", count = 1.5, role = "web" }]
  }
  expect_failures = [var.tiers]
}

run "twice" {
  command = plan
  variables {
    tiers = [{ name = "web", count = 1, role = "web" }, { name = "web", count = 1, role = "web" }]
  }
  expect_failures = [var.tiers]
}

run "no_name" {
  command = plan
  variables {
    tiers = [{ name = "Web 1", count = 1, role = "web" }]
  }
  expect_failures = [var.tiers]
}

run "scale_zero" {
  command = plan
  variables {
    scale = 0
  }
  expect_failures = [var.scale]
}

run "scale_above_one" {
  command = plan
  variables {
    scale = 1.5
  }
  expect_failures = [var.scale]
}

run "small_network" {
  command = plan
  variables {
    network = "198.18.0.0/24"
  }
  expect_failures = [var.network]
}
