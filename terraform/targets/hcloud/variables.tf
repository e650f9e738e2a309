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
  description = "As in the other targets; whole machines are not scaled."
  type        = number
  default     = 1

  validation {
    condition     = var.scale == 1
    error_message = "scale: allowed is 1."
  }
}

variable "machines" {
  description = "What each node type is: server type, cores, memory. ntier takes it from machines.json."
  type        = map(object({ type = string, cores = number, memory_bytes = number }))
  default     = {}
}

variable "surveyed" {
  description = "Node -> cores and memory as the machine itself says, once it has been asked; until then those of its type."
  type        = map(object({ cores = number, memory_bytes = number }))
  default     = {}
}

variable "location" {
  description = "Where all machines are."
  type        = string
  default     = ""
}

variable "zone" {
  description = "Network zone of the location."
  type        = string
  default     = "eu-central"
}

variable "image" {
  description = "Image of the machines that are made from now on."
  type        = string
  default     = "debian-13"
}

variable "images" {
  description = "Tier -> number of the snapshot that its machines are made from, instead of the image. Machines that are there stay as they are."
  type        = map(string)
  default     = {}
}

variable "only" {
  description = "Tiers whose machines are made, each with its usual address; null: all."
  type        = list(string)
  default     = null
}

variable "network" {
  description = "Private network of the nodes; see modules/topology."
  type        = string
  default     = "10.98.0.0/16"
}

variable "labels" {
  description = "On everything that is made: whose it is, for what, and when it should be gone."
  type        = map(string)
  default     = {}
}

variable "prefix" {
  description = "Beginning of all names, unique among the deployments of an account."
  type        = string
  default     = "ntier"
}

variable "controllers" {
  description = "Networks from which SSH is let in."
  type        = list(string)
  default     = []
}

variable "host_keys" {
  description = "Folder of the nodes' host keys; see modules/first_boot."
  type        = string
  default     = ""
}

variable "public_key" {
  description = "SSH key of the controller."
  type        = string
  default     = ""
}

variable "silent_s" {
  description = "Seconds without a sign of life after which a machine shuts down."
  type        = number
  default     = 3600
}

variable "apt" {
  description = "Sources of packages that Debian does not have, each for nodes with one of its roles; keyid is the key's whole fingerprint."
  type        = map(object({ source = string, keyid = string, roles = list(string) }))
  default     = {}
}

variable "poll_interval" {
  description = "How often the provider asks whether something is done."
  type        = string
  default     = "1s"
}
