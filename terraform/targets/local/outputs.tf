output "nodes" {
  description = "What Ansible and the harness get to see: name, tier, index, node_type, address, role, image, cpu_cores, memory_bytes, disk_bytes_s, network_bits_s (null = not limited)."
  value       = module.topology.nodes
  depends_on  = [terraform_data.known_hosts]
}
