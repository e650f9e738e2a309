variable "system" {
  description = "Name of the system under test. A node of another system is made anew."
  type        = string
  default     = ""
}

variable "tiers" {
  description = "Groups of nodes; see modules/topology. Empty: none, which is enough to destroy what there is."
  type = list(object({
    name               = string
    count              = number
    node_type          = optional(string, "normal")
    role               = string
    image              = optional(string)
    memory_floor_bytes = optional(number, 0)
  }))
  default = []
}

variable "scale" {
  description = "Share of a core that a normal node has once limits are in force."
  type        = number
  default     = 0.1
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
