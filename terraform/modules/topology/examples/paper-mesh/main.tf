# Every topology of the paper's Figure 3: 1 web, 1..3 app, 1 middleware, 1..9 low-cost database nodes.
locals {
  mesh = { for pair in setproduct(range(1, 4), range(1, 10)) : "1/${pair[0]}/1/${pair[1]}ML" => pair }
}

module "topology" {
  for_each = local.mesh
  source   = "../.."
  scale    = 0.5
  tiers = [
    { name = "web", count = 1, role = "web" },
    { name = "app", count = each.value[0], role = "app" },
    { name = "middleware", count = 1, role = "haproxy" },
    { name = "db", count = each.value[1], role = "mysql", node_type = "low_cost" },
    { name = "client", count = 1, role = "client", node_type = "client" },
  ]
}

output "node_counts" {
  description = "Topology -> nodes, clients included."
  value       = { for topology, result in module.topology : topology => length(result.nodes) }
}
