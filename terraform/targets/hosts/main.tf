# Machines that exist already: nothing is created. The topology says which nodes there are, the variable `hosts` which machine each is.

module "topology" {
  source   = "../../modules/topology"
  topology = var.topology
  scale    = var.scale
  clients  = var.clients
}

locals {
  role = {
    web        = "web"
    app        = "app"
    middleware = var.middleware
    db         = module.topology.dbms
    client     = "client"
  }
  names   = toset([for node in module.topology.nodes : node.name])
  missing = setsubtract(local.names, keys(var.hosts))
  strange = setsubtract(keys(var.hosts), local.names)
}
