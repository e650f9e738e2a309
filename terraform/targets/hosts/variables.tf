variable "topology" {
  description = "For example 1/2/1/9ML; see modules/topology."
  type        = string
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

variable "clients" {
  description = "Number of load generators."
  type        = number
  default     = 1
}

variable "middleware" {
  description = "Middleware of the third tier; names its role."
  type        = string
  default     = "shardingsphere"
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
