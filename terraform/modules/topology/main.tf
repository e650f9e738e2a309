# Tiers to nodes: names, addresses, and what a node of each type has at this scale.

locals {
  # Data, not code; the harness reads the same file (README.md says where its numbers come from).
  node_types = var.node_types != null ? var.node_types : jsondecode(file("${path.module}/node_types.json"))

  nodes = flatten([
    for t, tier in var.tiers : [
      for i in range(1, tier.count + 1) : {
        name           = "${tier.name}${i}"
        tier           = tier.name
        index          = i
        node_type      = tier.node_type
        role           = tier.role
        image          = tier.image
        address        = cidrhost(var.network, (t + 1) * 256 + i)
        cpu_cores      = try(local.node_types[tier.node_type].cpu_share * var.scale, null)
        memory_bytes   = try(max(ceil(local.node_types[tier.node_type].memory_bytes * var.scale), try(local.node_types[tier.node_type].memory_floor_bytes + 0, tier.memory_floor_bytes)), null)
        disk_bytes_s   = try(floor(local.node_types[tier.node_type].disk_bytes_s * var.scale), null)
        network_bits_s = try(floor(local.node_types[tier.node_type].network_bits_s * var.scale), null)
      }
    ]
  ])
}
