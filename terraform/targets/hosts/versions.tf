terraform {
  required_version = ">= 1.6" # also OpenTofu
  backend "local" {
    path = "/var/lib/ntier/hosts/terraform.tfstate"
  }
}
