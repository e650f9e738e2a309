output "nodes" {
  description = "What Ansible and the harness get to see: name, tier, index, node_type, address, role, image, cpu_cores, memory_bytes, disk_bytes_s, network_bits_s (null = not limited)."
  value = [
    for node in module.topology.nodes : {
      for key, value in local.nodes[node.name] : key => value
      if contains(["name", "tier", "index", "node_type", "address", "role", "image", "cpu_cores", "memory_bytes", "disk_bytes_s", "network_bits_s"], key)
    }
  ]
  depends_on = [terraform_data.known_hosts]
}
