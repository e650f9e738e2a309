variable "system" {
  description = "Name of the system under test. As in the other targets; nothing depends on it here."
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

variable "hosts" {
  description = "Machine of each node: name -> address in the experiment's network, cores, memory. ntier makes it from the inventory file."
  type = map(object({
    address      = string
    cores        = number
    memory_bytes = number
  }))
}

variable "scale" {
  description = "As in the other targets; whole machines are not scaled."
  type        = number
  default     = 1

  validation {
    condition     = var.scale == 1
    error_message = "scale: allowed is 1."
  }
}
