# Every topology of the paper's Figure 3: 1 web, 1..3 app, 1 middleware, 1..9 low-cost MySQL nodes.
locals {
  mesh = toset(flatten([for a in range(1, 4) : [for d in range(1, 10) : "1/${a}/1/${d}ML"]]))
}

module "topology" {
  for_each = local.mesh
  source   = "../.."
  topology = each.key
  scale    = 0.5
}

output "node_counts" {
  description = "Topology -> nodes, clients included."
  value       = { for topology, result in module.topology : topology => length(result.nodes) }
}
