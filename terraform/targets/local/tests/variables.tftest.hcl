# What the target takes and hands on; only plans, so nothing is made.

variables {
  topology  = "1/2/1/3ML"
  scale     = 0.2
  state_dir = "/nonexistent"
}

run "golden_images_and_roles" {
  command = plan
  assert {
    condition = { for n in output.nodes : n.tier => "${n.role} ${n.image}"... if n.index == 1 } == {
      web = ["web web"], app = ["app app"], middleware = ["shardingsphere shardingsphere"],
      db  = ["mysql mysql-small"], client = ["client client"]
    }
    error_message = "each tier has its role and golden image, the database with the data profile"
  }
  assert {
    condition = alltrue([for n in output.nodes : sort(keys(n)) == sort([
      "name", "tier", "index", "node_type", "address", "role", "image", "cpu_cores", "memory_bytes", "disk_bytes_s", "network_bits_s"
    ])])
    error_message = "a node has exactly the fields of the contract"
  }
}

run "bare_images" {
  command = plan
  variables {
    images       = { web = "base-trixie" }
    data_profile = "tiny"
  }
  assert {
    condition     = [for n in output.nodes : n.image if n.index == 1] == ["base-trixie", "app", "shardingsphere", "mysql-tiny", "client"]
    error_message = "an image given for a tier replaces that tier's only"
  }
}

run "unknown_middleware" {
  command = plan
  variables { middleware = "c-jdbc" }
  expect_failures = [var.middleware]
}

run "unknown_data_profile" {
  command = plan
  variables { data_profile = "huge" }
  expect_failures = [var.data_profile]
}

run "image_for_an_unknown_tier" {
  command = plan
  variables { images = { database = "base-sid" } }
  expect_failures = [var.images]
}
