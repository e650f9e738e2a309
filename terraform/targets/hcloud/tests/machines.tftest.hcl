# What is asked of the provider, without asking it. The host keys are made by the test that runs this (harness/tests/test_rented.py).

mock_provider "hcloud" {
  mock_resource "hcloud_network" { defaults = { id = "1" } }
  mock_resource "hcloud_firewall" { defaults = { id = "2" } }
  mock_resource "hcloud_placement_group" { defaults = { id = "3" } }
  mock_resource "hcloud_primary_ip" { defaults = { id = "4", ip_address = "203.0.113.1" } }
  mock_resource "hcloud_server" { defaults = { id = "5" } }
  mock_resource "hcloud_ssh_key" { defaults = { id = "6" } }
}

variables {
  system = "rubbos"
  tiers = [
    { name = "web", count = 1, role = "web" },
    { name = "app", count = 2, role = "app" },
    { name = "middleware", count = 1, role = "haproxy" },
    { name = "db", count = 9, role = "mysql", node_type = "low_cost", image = "mysql-small" },
    { name = "client", count = 1, role = "client", node_type = "client" },
  ]
  machines = {
    normal   = { type = "ccx13", cores = 2, memory_bytes = 8000000000 }
    low_cost = { type = "cpx12", cores = 1, memory_bytes = 2000000000 }
    client   = { type = "ccx23", cores = 4, memory_bytes = 16000000000 }
  }
  surveyed    = { db9 = { cores = 1, memory_bytes = 1999000000 } }
  location    = "fsn1"
  labels      = { "ntier-owner" = "me" }
  prefix      = "ntier-me"
  controllers = ["198.51.100.9/32"]
  host_keys   = "tests/keys"
  public_key  = "ssh-ed25519 AAAA me"
}

run "a_server_for_each_node" {
  command = apply
  assert {
    condition     = length(hcloud_server.node) == 14 && hcloud_server.node["db9"].name == "ntier-me-db9" && hcloud_server.node["db9"].server_type == "cpx12" && hcloud_server.node["client1"].server_type == "ccx23"
    error_message = "14 servers, each of its node type"
  }
  assert {
    condition     = alltrue([for s in hcloud_server.node : s.labels["ntier-owner"] == "me"]) && alltrue([for a in hcloud_primary_ip.node : a.labels["ntier-owner"] == "me"]) && hcloud_network.nodes[0].labels["ntier-owner"] == "me" && hcloud_firewall.nodes[0].labels["ntier-owner"] == "me" && hcloud_ssh_key.controller[0].labels["ntier-owner"] == "me" && alltrue([for g in hcloud_placement_group.apart : g.labels["ntier-owner"] == "me"])
    error_message = "whatever is made is known by its owner"
  }
  assert {
    condition     = length(hcloud_placement_group.apart) == 2
    error_message = "a group holds ten"
  }
  assert {
    condition     = [for r in hcloud_firewall.nodes[0].rule : "${r.direction} ${r.port} ${join(",", r.source_ips)}"] == ["in 22 198.51.100.9/32"]
    error_message = "SSH from the controller, and nothing else"
  }
}

run "the_contract" {
  command = apply
  assert {
    condition     = [for n in output.nodes : "${n.address} ${n.role} ${n.image} ${n.cores} ${n.memory_bytes}" if n.name == "db9"] == ["10.98.4.9 mysql mysql-small 1 1999000000"]
    error_message = "a node has its private address, its data, and what the machine said of itself"
  }
  assert {
    condition     = alltrue([for n in output.nodes : n.cpu_cores == null]) && output.ssh["web1"] == "203.0.113.1" && output.machines["web1"] == "5"
    error_message = "no quota; where SSH reaches it; which machine it is"
  }
}

run "machines_that_are_there_stay_as_they_are" {
  command = apply
  variables {
    images = { db = "4711" }
    only   = ["web", "db"]
  }
  assert {
    condition     = hcloud_server.node["db9"].image == "debian-13" && length(hcloud_server.node) == 10
    error_message = "a newer snapshot makes no machine anew; those of other tiers go"
  }
  assert {
    condition     = [for n in output.nodes : n.address if n.name == "db9"] == ["10.98.4.9"] && tolist(keys(output.ssh)) == sort(output.nodes[*].name)
    error_message = "the tiers that are made have their usual addresses"
  }
}

run "only_the_web_server" {
  command = apply
  variables { only = ["web"] }
  assert {
    condition     = keys(hcloud_server.node) == ["web1"]
    error_message = "one tier alone"
  }
}

run "new_machines_are_made_from_snapshots" {
  command = plan
  variables { images = { db = "4711" } }
  assert {
    condition     = hcloud_server.node["db9"].image == "4711" && hcloud_server.node["client1"].image == "debian-13"
    error_message = "a tier with a snapshot has it, the others the image"
  }
}

run "nothing_for_nobody" {
  command = plan
  variables { tiers = [] }
  assert {
    condition     = length(hcloud_server.node) == 0 && length(hcloud_network.nodes) == 0
    error_message = "without tiers there is nothing to make"
  }
}
