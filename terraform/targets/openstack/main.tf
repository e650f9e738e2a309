# Machines of an OpenStack cloud: one instance per node with a floating address, a private network, a security group that lets in the
# controller's SSH only.

module "topology" {
  source  = "../../modules/topology"
  tiers   = var.tiers
  scale   = var.scale
  network = var.network
}

module "first_boot" {
  source         = "../../modules/first_boot"
  nodes          = [for node in module.topology.nodes : merge(node, { type = var.machines[node.node_type].type })]
  system         = var.system
  host_keys      = var.host_keys
  public_key     = var.public_key
  silent_s       = var.silent_s
  apt            = var.apt
  root_may_login = true
}

locals {
  nodes = { for node in module.topology.nodes : node.name => node }
  used  = length(local.nodes) > 0 ? 1 : 0
  # Tags are set by a request of their own, and after a crash in between nobody would know whose a thing is.
  labels = join(" ", [for key, value in var.labels : "${key}=${value}"])
}

resource "openstack_compute_keypair_v2" "controller" {
  count      = local.used
  name       = var.prefix
  public_key = trimspace(var.public_key)
}

resource "openstack_networking_network_v2" "nodes" {
  count          = local.used
  name           = var.prefix
  admin_state_up = true
  description    = local.labels
}

resource "openstack_networking_subnet_v2" "nodes" {
  count       = local.used
  name        = var.prefix
  network_id  = openstack_networking_network_v2.nodes[0].id
  cidr        = var.network
  ip_version  = 4
  description = local.labels

  # What the cloud itself puts into the network (DHCP) gets none of the nodes' addresses.
  allocation_pool {
    start = cidrhost(var.network, 2)
    end   = cidrhost(var.network, 254)
  }
}

data "openstack_networking_network_v2" "outside" {
  count    = local.used
  name     = var.zone
  external = true
}

resource "openstack_networking_router_v2" "nodes" {
  count               = local.used
  name                = var.prefix
  external_network_id = data.openstack_networking_network_v2.outside[0].id
  description         = local.labels
}

resource "openstack_networking_router_interface_v2" "nodes" {
  count     = local.used
  router_id = openstack_networking_router_v2.nodes[0].id
  subnet_id = openstack_networking_subnet_v2.nodes[0].id
}

resource "openstack_networking_secgroup_v2" "nodes" {
  count       = local.used
  name        = var.prefix
  description = local.labels
}

resource "openstack_networking_secgroup_rule_v2" "ssh" {
  for_each          = local.used == 1 ? toset(var.controllers) : toset([])
  description       = "SSH from the controller"
  direction         = "ingress"
  ethertype         = "IPv4"
  protocol          = "tcp"
  port_range_min    = 22
  port_range_max    = 22
  remote_ip_prefix  = each.key
  security_group_id = openstack_networking_secgroup_v2.nodes[0].id
}

# Among themselves the nodes' own filters let in what each tier needs.
resource "openstack_networking_secgroup_rule_v2" "inside" {
  count             = local.used
  direction         = "ingress"
  ethertype         = "IPv4"
  remote_ip_prefix  = var.network
  security_group_id = openstack_networking_secgroup_v2.nodes[0].id
}

# Each on a host of its own where there are enough of them: nodes on one host would be each other's neighbours.
resource "openstack_compute_servergroup_v2" "apart" {
  count    = local.used
  name     = var.prefix
  policies = ["soft-anti-affinity"]
}

resource "openstack_networking_port_v2" "node" {
  for_each           = local.nodes
  name               = "${var.prefix}-${each.key}"
  network_id         = openstack_networking_network_v2.nodes[0].id
  admin_state_up     = true
  security_group_ids = [openstack_networking_secgroup_v2.nodes[0].id]
  description        = "${local.labels} ntier-node=${each.key}"

  fixed_ip {
    subnet_id  = openstack_networking_subnet_v2.nodes[0].id
    ip_address = each.value.address
  }
}

resource "openstack_networking_floatingip_v2" "node" {
  for_each    = local.nodes
  depends_on  = [openstack_networking_router_interface_v2.nodes]
  pool        = var.zone
  port_id     = openstack_networking_port_v2.node[each.key].id
  description = "${local.labels} ntier-node=${each.key}"
}

resource "openstack_compute_instance_v2" "node" {
  for_each          = local.nodes
  depends_on        = [openstack_networking_router_interface_v2.nodes] # a first boot needs the metadata service
  name              = "${var.prefix}-${each.key}"
  flavor_name       = var.machines[each.value.node_type].type
  image_name        = var.image
  availability_zone = var.location == "any" ? null : var.location
  key_pair          = openstack_compute_keypair_v2.controller[0].name
  user_data         = module.first_boot.user_data[each.key]
  metadata          = merge(var.labels, { "ntier-node" = each.key })

  network {
    port = openstack_networking_port_v2.node[each.key].id
  }

  scheduler_hints {
    group = openstack_compute_servergroup_v2.apart[0].id
  }
}
