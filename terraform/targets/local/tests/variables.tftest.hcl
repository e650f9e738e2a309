# What the target takes and hands on; only plans, so nothing is made.

variables {
  tiers = [
    { name = "web", count = 1, role = "web", image = "web", memory_floor_bytes = 268435456 },
    { name = "app", count = 2, role = "app", image = "app", memory_floor_bytes = 1073741824 },
    { name = "middleware", count = 1, role = "haproxy", image = "haproxy", memory_floor_bytes = 1073741824 },
    { name = "db", count = 3, node_type = "low_cost", role = "mysql", image = "mysql-small", memory_floor_bytes = 1073741824 },
    { name = "client", count = 1, node_type = "client", role = "client", image = "client" },
  ]
  scale     = 0.2
  state_dir = "/nonexistent"
}

run "images_and_roles" {
  command = plan
  assert {
    condition = { for n in output.nodes : n.tier => "${n.role} ${n.image}"... if n.index == 1 } == {
      web = ["web web"], app = ["app app"], middleware = ["haproxy haproxy"],
      db  = ["mysql mysql-small"], client = ["client client"]
    }
    error_message = "each node has the role and image of its tier"
  }
  assert {
    condition = alltrue([for n in output.nodes : sort(keys(n)) == sort([
      "name", "tier", "index", "node_type", "address", "role", "image", "cpu_cores", "memory_bytes", "disk_bytes_s", "network_bits_s"
    ])])
    error_message = "a node has exactly the fields of the contract"
  }
}

run "nothing_is_needed_to_destroy" {
  command = plan
  variables { tiers = [] }
  assert {
    condition     = length(output.nodes) == 0
    error_message = "without tiers there are no nodes"
  }
}
