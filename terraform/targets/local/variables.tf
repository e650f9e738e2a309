variable "topology" {
  description = "For example 1/2/1/9ML; see modules/topology."
  type        = string
}

variable "scale" {
  description = "Share of a core that a normal node has once limits are in force."
  type        = number
  default     = 0.1
}

variable "clients" {
  description = "Number of load generators."
  type        = number
  default     = 1
}

variable "middleware" {
  description = "Middleware of the third tier; names its role and image."
  type        = string
  default     = "shardingsphere"

  validation {
    condition     = contains(["shardingsphere", "haproxy", "pgpool", "pgbouncer", "mysqlrouter", "proxysql"], var.middleware)
    error_message = "middleware: allowed are shardingsphere, haproxy, pgpool, pgbouncer, mysqlrouter, proxysql."
  }
}

variable "data_profile" {
  description = "Data that the database nodes hold: tiny, small, standard or expanded."
  type        = string
  default     = "small"

  validation {
    condition     = contains(["tiny", "small", "standard", "expanded"], var.data_profile)
    error_message = "data_profile: allowed are tiny, small, standard, expanded."
  }
}

variable "images" {
  description = "Image by tier, where it is not the golden one (base-trixie makes bare nodes)."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for tier in keys(var.images) : contains(["web", "app", "middleware", "db", "client"], tier)])
    error_message = "images: the keys are the tiers web, app, middleware, db, client."
  }
}

variable "node_types" {
  description = "Node types other than the module's own; see modules/topology."
  type = map(object({
    cpu_share          = optional(number)
    memory_bytes       = optional(number)
    memory_floor_bytes = optional(number)
    disk_bytes_s       = optional(number)
    network_bits_s     = optional(number)
  }))
  default = null
}

variable "network" {
  description = "Network of the nodes' addresses, within the bridge's; see modules/topology."
  type        = string
  default     = "198.18.0.0/16"
}

variable "state_dir" {
  description = "Machine-wide state; the same as the environment variable NTIER_STATE."
  type        = string
  default     = "/var/lib/ntier"
}
