variable "topology" {
  description = "W/A/C/D and the DBMS letter M (MySQL), P (PostgreSQL) or C (MySQL Cluster: the third number counts SQL nodes, the fourth data nodes), then L if the database nodes are low-cost: 1/2/1/9ML."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[0-9]+/[0-9]+/[0-9]+/[0-9]+[A-Za-z]*$", var.topology))
    error_message = "topology: expected W/A/C/D with four numbers and a DBMS letter, for example 1/2/1/9M."
  }
  validation {
    condition     = alltrue([for n in regexall("[0-9]+", var.topology) : can(regex("^[1-9][0-9]?$", n))])
    error_message = "topology: each number counts the nodes of a tier; allowed are 1..99, without leading zeros."
  }
  validation {
    condition     = can(regex("[0-9](M|P|C)L?$", var.topology))
    error_message = "topology: the DBMS letter is M (MySQL), P (PostgreSQL) or C (MySQL Cluster), then an optional L (low-cost database nodes)."
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

variable "clients" {
  description = "Number of load generators; they are not in the notation."
  type        = number
  default     = 1

  validation {
    condition     = contains(range(1, 17), var.clients)
    error_message = "clients: allowed are the whole numbers 1..16."
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

variable "memory_floor_bytes" {
  description = "Least memory of a tier's nodes, unless their type says so itself. Today's programs need it at any scale: an idle MySQL 9.7 takes 350-500 MB, a JVM with its pools as much."
  type        = map(number)
  default = {
    web        = 268435456
    app        = 1073741824
    middleware = 1073741824
    db         = 1073741824
    client     = 0
  }
}

variable "network" {
  description = "Network of the nodes' addresses, at least a /16. A tier has 256 addresses: db3 is number 4 x 256 + 3."
  type        = string
  default     = "198.18.0.0/16" # reserved for benchmarks (RFC 2544)

  validation {
    condition     = can(cidrhost(var.network, 6 * 256))
    error_message = "network: expected an IPv4 network with at least 1537 addresses, for example 198.18.0.0/16."
  }
}
