# What is asked of the provider, without asking it. The host keys are made by the test that runs this (harness/tests/test_rented.py).

mock_provider "openstack" {}

variables {
  system = "rubbos"
  tiers = [
    { name = "web", count = 1, role = "web" },
    { name = "db", count = 2, role = "postgresql" },
    { name = "client", count = 1, role = "client", node_type = "client" },
  ]
  machines = {
    normal = { type = "m1.large", cores = 4, memory_bytes = 8000000000 }
    client = { type = "m1.xlarge", cores = 8, memory_bytes = 16000000000 }
  }
  labels      = { "ntier-owner" = "me" }
  prefix      = "ntier-me"
  controllers = ["198.51.100.9/32"]
  host_keys   = "tests/keys"
  public_key  = "ssh-ed25519 AAAA me"
}

run "an_instance_for_each_node" {
  command = apply
  assert {
    condition     = length(openstack_compute_instance_v2.node) == 4 && openstack_compute_instance_v2.node["client1"].flavor_name == "m1.xlarge" && openstack_compute_instance_v2.node["db2"].metadata["ntier-owner"] == "me"
    error_message = "four instances, each of its node type, known by their owner"
  }
  assert {
    condition     = alltrue([for t in [openstack_networking_network_v2.nodes[0], openstack_networking_router_v2.nodes[0], openstack_networking_secgroup_v2.nodes[0], openstack_networking_port_v2.node["web1"], openstack_networking_floatingip_v2.node["db2"]] : startswith(t.description, "ntier-owner=me")]) && endswith(openstack_networking_port_v2.node["db1"].description, " ntier-node=db1") && openstack_compute_keypair_v2.controller[0].name == "ntier-me" && openstack_compute_servergroup_v2.apart[0].name == "ntier-me"
    error_message = "whatever is made is known by its owner from the request on that makes it"
  }
  assert {
    condition     = [for n in output.nodes : n.address] == ["10.98.1.1", "10.98.2.1", "10.98.2.2", "10.98.3.1"] && length(output.ssh) == 4
    error_message = "the contract of every target"
  }
  assert {
    condition     = [for r in openstack_networking_secgroup_rule_v2.ssh : "${r.port_range_min} ${r.remote_ip_prefix}"] == ["22 198.51.100.9/32"] && openstack_networking_secgroup_rule_v2.inside[0].remote_ip_prefix == "10.98.0.0/16"
    error_message = "from outside SSH from the controller only; among themselves all"
  }
}

run "nothing_for_nobody" {
  command = plan
  variables { tiers = [] }
  assert {
    condition     = length(openstack_compute_instance_v2.node) == 0 && length(openstack_networking_network_v2.nodes) == 0
    error_message = "without tiers there is nothing to make"
  }
}
