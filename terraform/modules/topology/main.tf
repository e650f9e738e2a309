# The one place that knows how many of what.

locals {
  counts   = [for n in regexall("[0-9]+", var.topology) : tonumber(n)]
  letter   = try(regex("([A-Z])L?$", var.topology)[0], "")
  low_cost = endswith(var.topology, "L")
  dbms     = lookup({ M = "mysql", P = "postgresql", C = "mysql_cluster" }, local.letter, null)

  # Data, not code; the harness reads the same file (README.md says where its numbers come from).
  node_types = var.node_types != null ? var.node_types : jsondecode(file("${path.module}/node_types.json"))

  tiers = [
    { name = "web", count = try(local.counts[0], 0), node_type = "normal" },
    { name = "app", count = try(local.counts[1], 0), node_type = "normal" },
    { name = "middleware", count = try(local.counts[2], 0), node_type = "normal" },
    { name = "db", count = try(local.counts[3], 0), node_type = local.low_cost ? "low_cost" : "normal" },
    { name = "client", count = var.clients, node_type = "client" },
  ]

  nodes = flatten([
    for t, tier in local.tiers : [
      for i in range(1, tier.count + 1) : {
        name           = "${tier.name}${i}"
        tier           = tier.name
        index          = i
        node_type      = tier.node_type
        address        = cidrhost(var.network, (t + 1) * 256 + i)
        cpu_cores      = try(local.node_types[tier.node_type].cpu_share * var.scale, null)
        memory_bytes   = try(max(ceil(local.node_types[tier.node_type].memory_bytes * var.scale), try(local.node_types[tier.node_type].memory_floor_bytes + 0, var.memory_floor_bytes[tier.name])), null)
        disk_bytes_s   = try(floor(local.node_types[tier.node_type].disk_bytes_s * var.scale), null)
        network_bits_s = try(floor(local.node_types[tier.node_type].network_bits_s * var.scale), null)
      }
    ]
  ])
}
