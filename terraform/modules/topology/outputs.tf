output "nodes" {
  description = "One object per node, in the order of the tiers: name, tier, index, node_type, role, image, address, cpu_cores (null = not limited), memory_bytes, disk_bytes_s, network_bits_s."
  value       = local.nodes
}
