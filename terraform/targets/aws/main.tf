# Instances of AWS: one per node in a cluster placement group, a network of their own, a security group that lets in the controller's SSH
# only. An instance that shuts itself down is terminated, so the timer of modules/first_boot ends the bill, too.

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
  root_may_login = false
}

locals {
  nodes = { for node in module.topology.nodes : node.name => node }
  used  = length(local.nodes) > 0 ? 1 : 0
}

data "aws_ami" "debian" {
  count       = local.used
  most_recent = true
  owners      = ["136693071363"] # Debian

  filter {
    name   = "name"
    values = ["${var.image}-amd64-*"]
  }
}

resource "aws_key_pair" "controller" {
  count      = local.used
  key_name   = var.prefix
  public_key = trimspace(var.public_key)
}

resource "aws_vpc" "nodes" {
  count      = local.used
  cidr_block = var.network
  tags       = { Name = var.prefix }
}

resource "aws_subnet" "nodes" {
  count             = local.used
  vpc_id            = aws_vpc.nodes[0].id
  cidr_block        = var.network
  availability_zone = var.zone == "" ? null : var.zone
  tags              = { Name = var.prefix }
}

resource "aws_internet_gateway" "nodes" {
  count  = local.used
  vpc_id = aws_vpc.nodes[0].id
  tags   = { Name = var.prefix }
}

resource "aws_route_table" "nodes" {
  count  = local.used
  vpc_id = aws_vpc.nodes[0].id
  tags   = { Name = var.prefix }

  route {
    cidr_block = "0.0.0.0/0"
    gateway_id = aws_internet_gateway.nodes[0].id
  }
}

resource "aws_route_table_association" "nodes" {
  count          = local.used
  subnet_id      = aws_subnet.nodes[0].id
  route_table_id = aws_route_table.nodes[0].id
}

resource "aws_security_group" "nodes" {
  count       = local.used
  name        = var.prefix
  description = "SSH from the controller; the nodes among themselves"
  vpc_id      = aws_vpc.nodes[0].id

  ingress {
    description = "SSH from the controller"
    protocol    = "tcp"
    from_port   = 22
    to_port     = 22
    cidr_blocks = var.controllers
  }

  ingress {
    description = "the nodes' own filters let in what each tier needs"
    protocol    = "-1"
    from_port   = 0
    to_port     = 0
    self        = true
  }

  egress {
    protocol    = "-1"
    from_port   = 0
    to_port     = 0
    cidr_blocks = ["0.0.0.0/0"]
  }
}

resource "aws_placement_group" "close" {
  count    = local.used
  name     = var.prefix
  strategy = "cluster"
}

resource "aws_instance" "node" {
  for_each                             = local.nodes
  ami                                  = data.aws_ami.debian[0].id
  instance_type                        = var.machines[each.value.node_type].type
  key_name                             = aws_key_pair.controller[0].key_name
  subnet_id                            = aws_subnet.nodes[0].id
  private_ip                           = each.value.address
  associate_public_ip_address          = true
  vpc_security_group_ids               = [aws_security_group.nodes[0].id]
  placement_group                      = each.value.node_type == "low_cost" ? null : aws_placement_group.close[0].name # burstable types cannot be in one
  instance_initiated_shutdown_behavior = "terminate"
  user_data_base64                     = base64encode(module.first_boot.user_data[each.key])
  user_data_replace_on_change          = true
  tags                                 = { Name = "${var.prefix}-${each.key}", "ntier-node" = each.key }
  volume_tags                          = merge(var.labels, { "ntier-node" = each.key })

  root_block_device {
    volume_type           = "gp3"
    volume_size           = 30
    delete_on_termination = true
  }

  metadata_options {
    http_tokens = "required"
  }

  lifecycle {
    ignore_changes = [ami] # a newer image is no reason to make a machine anew
  }
}
