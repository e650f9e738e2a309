# Nodes as Incus containers on this machine, made by node.sh. Needs no provider, hence no registry.

module "topology" {
  source     = "../../modules/topology"
  tiers      = var.tiers
  scale      = var.scale
  network    = var.network
  node_types = var.node_types # null: the module's own
}

locals {
  # Alias -> fingerprint, written by set-up: a node whose image was built anew is made anew.
  fingerprint_file = "${var.state_dir}/images.json"
  fingerprint      = fileexists(local.fingerprint_file) ? jsondecode(file(local.fingerprint_file)) : {}

  nodes = { for node in module.topology.nodes : node.name => node }
  specs = {
    for name, node in local.nodes : name => {
      system      = var.system
      image       = node.image
      fingerprint = lookup(local.fingerprint, node.image, "")
      address     = node.address
      memory      = node.memory_bytes == null ? "-" : tostring(node.memory_bytes)
      network     = node.network_bits_s == null ? "-" : tostring(node.network_bits_s)
    }
  }
}

# When the deployment goes, whatever else is left in the project that no other state has goes too (nodes depend on it, so it goes last).
resource "terraform_data" "project" {
  provisioner "local-exec" {
    when    = destroy
    quiet   = true
    command = "\"${path.module}/node.sh\" clear"
  }
}

# Before each apply: strangers in the project are an error, our own leftovers go, stopped or vanished nodes come back.
resource "terraform_data" "guard" {
  depends_on       = [terraform_data.project]
  triggers_replace = timestamp()

  provisioner "local-exec" {
    quiet   = true
    command = "\"${path.module}/node.sh\" guard"
    environment = {
      NTIER_SPECS = join("", [for name, spec in local.specs : "${name} ${spec.image} ${spec.address} ${spec.memory} ${spec.network}\n"])
    }
  }
}

resource "terraform_data" "node" {
  for_each         = local.specs
  depends_on       = [terraform_data.guard]
  input            = each.key
  triggers_replace = each.value

  provisioner "local-exec" {
    quiet   = true
    command = "\"${path.module}/node.sh\" create ${each.key} ${each.value.image} ${each.value.address} ${each.value.memory} ${each.value.network}"
  }

  provisioner "local-exec" {
    when    = destroy
    quiet   = true
    command = "\"${path.module}/node.sh\" delete ${self.input}"
  }
}

# The host keys of exactly these nodes, for SSH and Ansible.
resource "terraform_data" "known_hosts" {
  triggers_replace = [terraform_data.guard.id, values(terraform_data.node)[*].id]

  provisioner "local-exec" {
    quiet   = true
    command = "\"${path.module}/node.sh\" known-hosts ${join(" ", keys(local.specs))}"
  }
}
