output "nodes" {
  description = "What Ansible and the harness get to see: name, tier, index, node_type, address, role, image, cpu_cores (null = not limited), memory_bytes."
  value = [
    for node in module.topology.nodes : {
      for key, value in local.nodes[node.name] : key => value
      if contains(["name", "tier", "index", "node_type", "address", "role", "image", "cpu_cores", "memory_bytes"], key)
    }
  ]
  depends_on = [terraform_data.known_hosts]
}
