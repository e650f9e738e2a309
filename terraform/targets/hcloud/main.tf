# Machines rented from Hetzner Cloud: one server per node, a private network, a firewall that lets in the controller's SSH only.

module "topology" {
  source  = "../../modules/topology"
  tiers   = var.tiers
  scale   = var.scale
  network = var.network
}

module "first_boot" {
  source         = "../../modules/first_boot"
  nodes          = [for node in local.made : merge(node, { type = var.machines[node.node_type].type })]
  system         = var.system
  host_keys      = var.host_keys
  public_key     = var.public_key
  silent_s       = var.silent_s
  apt            = var.apt
  root_may_login = true
}

locals {
  made  = [for node in module.topology.nodes : node if var.only == null ? true : contains(var.only, node.tier)]
  nodes = { for node in local.made : node.name => node }
  order = { for i, node in local.made : node.name => i }
  used  = length(local.nodes) > 0 ? 1 : 0
  # A group holds at most 10 servers, each on a host of its own. Hetzner has no placement that brings machines close together.
  groups = ceil(length(local.nodes) / 10)
}

resource "hcloud_ssh_key" "controller" {
  count      = local.used
  name       = var.prefix
  public_key = trimspace(var.public_key)
  labels     = var.labels
}

resource "hcloud_network" "nodes" {
  count    = local.used
  name     = var.prefix
  ip_range = var.network
  labels   = var.labels
}

resource "hcloud_network_subnet" "nodes" {
  count        = local.used
  network_id   = hcloud_network.nodes[0].id
  type         = "cloud"
  network_zone = var.zone
  ip_range     = var.network
}

# It filters the public addresses; the private network is open among the nodes, whose own filters let in what each tier needs.
resource "hcloud_firewall" "nodes" {
  count  = local.used
  name   = var.prefix
  labels = var.labels

  rule {
    description = "SSH from the controller"
    direction   = "in"
    protocol    = "tcp"
    port        = "22"
    source_ips  = var.controllers
  }
}

resource "hcloud_placement_group" "apart" {
  count  = local.groups
  name   = "${var.prefix}-${count.index + 1}"
  type   = "spread"
  labels = var.labels
}

# Made by themselves, since an address that comes with its server has no label to be found by.
resource "hcloud_primary_ip" "node" {
  for_each      = local.nodes
  name          = "${var.prefix}-${each.key}"
  type          = "ipv4"
  assignee_type = "server"
  location      = var.location
  auto_delete   = false
  labels        = merge(var.labels, { "ntier-node" = each.key })
}

resource "hcloud_server" "node" {
  for_each           = local.nodes
  depends_on         = [hcloud_network_subnet.nodes]
  name               = "${var.prefix}-${each.key}"
  server_type        = var.machines[each.value.node_type].type
  image              = lookup(var.images, each.value.tier, var.image)
  location           = var.location
  user_data          = module.first_boot.user_data[each.key]
  ssh_keys           = [hcloud_ssh_key.controller[0].id]
  firewall_ids       = [hcloud_firewall.nodes[0].id]
  placement_group_id = hcloud_placement_group.apart[floor(local.order[each.key] / 10)].id
  labels             = merge(var.labels, { "ntier-node" = each.key })

  public_net {
    ipv4_enabled = true
    ipv4         = hcloud_primary_ip.node[each.key].id
    ipv6_enabled = false
  }

  network {
    network_id = hcloud_network.nodes[0].id
    ip         = each.value.address
    alias_ips  = []
  }

  # A machine stays what it is when there is a newer snapshot, and also when its own is deleted: the API then says that it has no image.
  lifecycle {
    ignore_changes = [image]
  }
}
