terraform {
  required_version = ">= 1.6" # also OpenTofu
  required_providers {
    openstack = {
      source  = "terraform-provider-openstack/openstack"
      version = ">= 3.4.0, < 4.0.0"
    }
  }
  backend "local" {
    path = "/var/lib/ntier/openstack/terraform.tfstate"
  }
}

# The cloud and who we are come from the environment (OS_CLOUD, or OS_AUTH_URL and the like) and are in no file.
provider "openstack" {
  max_retries = 5 # after a broken connection, and after an answer 429, which says how long to wait
}
