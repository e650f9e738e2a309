terraform {
  required_version = ">= 1.6" # also OpenTofu
  # Machine-wide, since Incus is: another checkout must find the nodes that this one made.
  backend "local" {
    path = "/var/lib/ntier/local/terraform.tfstate"
  }
}
