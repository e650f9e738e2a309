# Machines that exist already: nothing is created. The tiers say which nodes there are, the variable `hosts` which machine each is.

module "topology" {
  source = "../../modules/topology"
  tiers  = var.tiers
  scale  = var.scale
}

locals {
  names   = toset([for node in module.topology.nodes : node.name])
  missing = setsubtract(local.names, keys(var.hosts))
  strange = setsubtract(keys(var.hosts), local.names)
}
