# What a rented machine does at its first boot: it takes the host key that was made for it before it existed, lets in one key,
# and shuts itself down once nobody has been heard of for a while.

locals {
  user_data = {
    for node in var.nodes : node.name => templatefile("${path.module}/cloud-init.yaml.tftpl", {
      made_for       = "${var.system} ${node.role} ${node.type}" # a node that gets another part, or another type, is made anew: no disk shrinks
      public_key     = trimspace(var.public_key)
      host_key       = file("${var.host_keys}/${node.name}")
      host_key_pub   = trimspace(file("${var.host_keys}/${node.name}.pub"))
      silent_s       = var.silent_s
      root_may_login = var.root_may_login
      apt            = { for name, source in var.apt : name => { source = source.source, keyid = source.keyid } if contains(source.roles, node.role) }
    })
  }
}
