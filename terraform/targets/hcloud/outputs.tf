output "nodes" {
  description = "What Ansible and the harness get to see, as from target hosts: name, tier, index, node_type, address, role, image (its data, if it holds some), cpu_cores (null: there is no quota), memory_bytes, cores."
  value = [
    for node in local.made : {
      name         = node.name
      tier         = node.tier
      index        = node.index
      node_type    = node.node_type
      address      = node.address
      role         = node.role
      image        = node.image
      cpu_cores    = null
      memory_bytes = try(var.surveyed[node.name].memory_bytes, var.machines[node.node_type].memory_bytes)
      cores        = try(var.surveyed[node.name].cores, var.machines[node.node_type].cores)
    }
  ]
}

output "ssh" {
  description = "Where SSH reaches each node: its public address."
  value       = { for name, address in hcloud_primary_ip.node : name => address.ip_address }
}

output "machines" {
  description = "The provider's number of each node's machine: another one is another machine, whatever its name."
  value       = { for name, server in hcloud_server.node : name => server.id }
}
