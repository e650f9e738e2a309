output "nodes" {
  description = "One object per node, in the order of the tiers: name, tier, index, node_type, address, cpu_cores (null = not limited), memory_bytes, disk_bytes_s, network_bits_s."
  value       = local.nodes
}

output "dbms" {
  description = "mysql, postgresql or mysql_cluster."
  value       = local.dbms
}

output "slug" {
  description = "The topology as it stands in paths and keys: 1-2-1-9ML."
  value       = replace(var.topology, "/", "-")
}
