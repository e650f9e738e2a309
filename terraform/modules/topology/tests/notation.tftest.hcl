# The notation, right and wrong. Offline: no provider, nothing is made.

run "the_papers_thirteen_nodes" {
  command = plan
  variables {
    topology = "1/2/1/9ML"
    scale    = 0.5
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
  assert {
    condition     = output.dbms == "mysql" && output.slug == "1-2-1-9ML"
    error_message = "M is MySQL; the slug replaces the slashes"
  }
}

run "one_of_each" {
  command = plan
  variables {
    topology = "1/1/1/1M"
    scale    = 0.2
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
    topology = "99/99/99/99P"
    clients  = 16
  }
  assert {
    condition     = length(distinct([for n in output.nodes : n.address])) == 99 * 4 + 16
    error_message = "every node has an address of its own"
  }
  assert {
    condition     = output.dbms == "postgresql"
    error_message = "P is PostgreSQL"
  }
}

run "mysql_cluster" {
  command = plan
  variables {
    topology = "1/2/2/4C"
  }
  assert {
    condition     = output.dbms == "mysql_cluster" && length(output.nodes) == 10
    error_message = "C is MySQL Cluster"
  }
}

run "no_dbms" {
  command = plan
  variables { topology = "1/2/1/2" }
  expect_failures = [var.topology]
}

run "no_dbms_but_low_cost" {
  command = plan
  variables { topology = "1/2/1/2L" }
  expect_failures = [var.topology]
}

run "unknown_dbms" {
  command = plan
  variables { topology = "1/1/1/1X" }
  expect_failures = [var.topology]
}

run "two_letters" {
  command = plan
  variables { topology = "1/1/1/1MP" }
  expect_failures = [var.topology]
}

run "lower_case" {
  command = plan
  variables { topology = "1/1/1/1m" }
  expect_failures = [var.topology]
}

run "three_numbers" {
  command = plan
  variables { topology = "1/1/1M" }
  expect_failures = [var.topology]
}

run "zero" {
  command = plan
  variables { topology = "1/0/1/1M" }
  expect_failures = [var.topology]
}

run "hundred" {
  command = plan
  variables { topology = "1/1/1/100M" }
  expect_failures = [var.topology]
}

run "slug_is_not_the_notation" {
  command = plan
  variables { topology = "1-1-1-1M" }
  expect_failures = [var.topology]
}

run "blank" {
  command = plan
  variables { topology = "" }
  expect_failures = [var.topology]
}

run "scale_zero" {
  command = plan
  variables {
    topology = "1/1/1/1M"
    scale    = 0
  }
  expect_failures = [var.scale]
}

run "scale_above_one" {
  command = plan
  variables {
    topology = "1/1/1/1M"
    scale    = 1.5
  }
  expect_failures = [var.scale]
}

run "half_a_client" {
  command = plan
  variables {
    topology = "1/1/1/1M"
    clients  = 1.5
  }
  expect_failures = [var.clients]
}

run "small_network" {
  command = plan
  variables {
    topology = "1/1/1/1M"
    network  = "198.18.0.0/24"
  }
  expect_failures = [var.network]
}
