variable "nodes" {
  description = "Nodes of the module topology, each with the type of its machine."
  type        = list(object({ name = string, role = string, type = string }))
}

variable "system" {
  description = "Name of the system under test."
  type        = string
}

variable "host_keys" {
  description = "Folder with each node's host key (NAME, NAME.pub), made before the machines. Its contents get into no state: providers keep only a hash of the user data, and what does not is said in the target's README."
  type        = string
}

variable "public_key" {
  description = "SSH key of the controller."
  type        = string
}

variable "silent_s" {
  description = "Seconds after which a machine shuts down if the controller has not said anything."
  type        = number
}

variable "root_may_login" {
  description = "Whether the controller comes in as root, else as the image's own user."
  type        = bool
}

variable "apt" {
  description = "Sources of packages that Debian does not have, each for nodes with one of its roles; keyid is the key's whole fingerprint."
  type        = map(object({ source = string, keyid = string, roles = list(string) }))
  default     = {}
}
