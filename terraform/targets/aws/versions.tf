terraform {
  required_version = ">= 1.6" # also OpenTofu
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.0.0, < 7.0.0"
    }
  }
  backend "local" {
    path = "/var/lib/ntier/aws/terraform.tfstate"
  }
}

# Who we are comes from the environment (AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY) and is in no file.
provider "aws" {
  region = var.location
  default_tags { tags = var.labels }
}
