output "nodes" {
  description = "What Ansible and the harness get to see: name, tier, index, node_type, address, role, image (its data, if it holds some; nothing is cloned), cpu_cores (null: there is no quota), memory_bytes, cores."
  value = [
    for node in module.topology.nodes : {
      name         = node.name
      tier         = node.tier
      index        = node.index
      node_type    = node.node_type
      address      = var.hosts[node.name].address
      role         = node.role
      image        = node.image
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
