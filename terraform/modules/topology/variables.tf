variable "tiers" {
  description = "Groups of nodes, from the users inwards and the load generators last: name, how many nodes, their type (of node_types), role and image, and what their programs need of memory at any scale. The harness makes it of a system and a topology."
  type = list(object({
    name               = string
    count              = number
    node_type          = optional(string, "normal")
    role               = string
    image              = optional(string)
    memory_floor_bytes = optional(number, 0)
  }))
  nullable = false

  validation {
    condition     = alltrue([for tier in var.tiers : can(regex("^[a-z][a-z0-9_]{0,39}$", tier.name))])
    error_message = "tiers: a name is small letters, digits and _, beginning with a letter."
  }
  validation {
    condition     = length(distinct(var.tiers[*].name)) == length(var.tiers)
    error_message = "tiers: a name is there twice."
  }
  validation {
    condition     = alltrue([for tier in var.tiers : contains(range(1, 100), tier.count)])
    error_message = "tiers: count is a whole number of 1..99."
  }
}

variable "scale" {
  description = "Size of the model: a node of type normal gets this share of a core."
  type        = number
  default     = 1

  validation {
    condition     = var.scale > 0 && var.scale <= 1
    error_message = "scale: allowed are numbers above 0 and at most 1."
  }
}

variable "node_types" {
  description = "What a node of each type has: share of a core at scale 1, memory, and speed of disk and network; null = not limited. Null as a whole: node_types.json."
  type = map(object({
    cpu_share          = optional(number)
    memory_bytes       = optional(number)
    memory_floor_bytes = optional(number)
    disk_bytes_s       = optional(number)
    network_bits_s     = optional(number)
  }))
  default = null

  validation {
    condition     = var.node_types == null ? true : alltrue([for type in ["normal", "low_cost", "client"] : contains(keys(var.node_types), type)])
    error_message = "node_types: the types normal, low_cost and client are needed."
  }
}

variable "network" {
  description = "Network of the nodes' addresses, at least a /16. A tier has 256 addresses: the third node of the fourth tier is number 4 x 256 + 3."
  type        = string
  default     = "198.18.0.0/16" # reserved for benchmarks (RFC 2544)

  validation {
    condition     = can(cidrhost(var.network, (length(var.tiers) + 1) * 256))
    error_message = "network: expected an IPv4 network with 256 addresses for each tier and 256 more, for example 198.18.0.0/16."
  }
}
