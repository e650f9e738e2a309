terraform {
  required_version = ">= 1.6" # also OpenTofu
  required_providers {
    hcloud = {
      source  = "hetznercloud/hcloud"
      version = ">= 1.58.0, < 2.0.0" # older ones read a field that the API has dropped since July 2026
    }
  }
  backend "local" {
    path = "/var/lib/ntier/hcloud/terraform.tfstate"
  }
}

# The token comes from the environment (HCLOUD_TOKEN) and is in no file.
provider "hcloud" {
  poll_interval = var.poll_interval
  poll_function = "constant"
}
