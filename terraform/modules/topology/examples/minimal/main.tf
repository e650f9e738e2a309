# The smallest system of four tiers, at a tenth of a core per node.
module "topology" {
  source   = "../.."
  topology = "1/1/1/1M"
  scale    = 0.1
}

output "nodes" {
  value = module.topology.nodes
}
