output "nodes" {
  description = "What Ansible and the harness get to see: name, tier, index, node_type, address, role, image (the data of a database node; nothing is cloned), cpu_cores (null: there is no quota), memory_bytes, cores."
  value = [
    for node in module.topology.nodes : {
      name         = node.name
      tier         = node.tier
      index        = node.index
      node_type    = node.node_type
      address      = var.hosts[node.name].address
      role         = local.role[node.tier]
      image        = node.tier == "db" ? "${local.role.db}-${var.data_profile}" : null
      cpu_cores    = null
      memory_bytes = var.hosts[node.name].memory_bytes
      cores        = var.hosts[node.name].cores
    } if contains(keys(var.hosts), node.name)
  ]
  precondition {
    condition     = length(local.missing) == 0 && length(local.strange) == 0
    error_message = "hosts: no machine for ${join(", ", local.missing)}; not a node: ${join(", ", local.strange)}."
  }
}
