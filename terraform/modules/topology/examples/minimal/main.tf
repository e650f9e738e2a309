# The smallest system of two tiers, at a tenth of a core per node.
module "topology" {
  source = "../.."
  scale  = 0.1
  tiers = [
    { name = "front", count = 1, role = "nginx" },
    { name = "back", count = 1, role = "postgresql" },
    { name = "client", count = 1, role = "client", node_type = "client" },
  ]
}

output "nodes" {
  value = module.topology.nodes
}
