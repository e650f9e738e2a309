# What the machines get to read, offline.

variables {
  nodes = [
    { name = "web1", role = "web", type = "ccx13" },
    { name = "db1", role = "mysql", type = "ccx13" },
  ]
  system         = "rubbos"
  host_keys      = "tests/keys"
  public_key     = "ssh-ed25519 AAAAC3Nz controller\n"
  silent_s       = 3600
  root_may_login = true
  apt            = { mysql = { source = "deb http://a trixie b", keyid = "BCA43417C3B485DD128EC6D4B7B3B788A8D3785C", roles = ["mysql"] } }
}

run "it_is_yaml_with_the_pinned_key" {
  command = plan
  assert {
    condition     = startswith(nonsensitive(output.user_data["web1"]), "#cloud-config\n# rubbos web ccx13\n")
    error_message = "cloud-init knows it by its first line; the second makes another part, or type, another machine"
  }
  assert {
    condition     = yamldecode(nonsensitive(output.user_data["web1"])).ssh_keys.ed25519_private == "not a key\nof web1\n"
    error_message = "the host key is the one that was made before the machine"
  }
  assert {
    condition     = yamldecode(nonsensitive(output.user_data["web1"])).ssh_authorized_keys == ["ssh-ed25519 AAAAC3Nz controller"]
    error_message = "one key may log in"
  }
  assert {
    condition     = !yamldecode(nonsensitive(output.user_data["web1"])).ssh_pwauth && !yamldecode(nonsensitive(output.user_data["web1"])).disable_root
    error_message = "no passwords; root where the target says so"
  }
}

run "it_shuts_down_when_nobody_is_heard" {
  command = plan
  assert {
    condition     = strcontains([for f in yamldecode(nonsensitive(output.user_data["db1"])).write_files : f.content if endswith(f.path, ".timer")][0], "OnActiveSec=3600")
    error_message = "the timer has the seconds"
  }
  assert {
    condition     = strcontains([for f in yamldecode(nonsensitive(output.user_data["db1"])).write_files : f.content if endswith(f.path, ".service")][0], "poweroff")
    error_message = "and the service ends the machine"
  }
}

run "only_who_needs_it_gets_a_source" {
  command = plan
  assert {
    condition     = length(yamldecode(nonsensitive(output.user_data["web1"])).apt.sources) == 0
    error_message = "web1 needs nothing"
  }
  assert {
    condition     = yamldecode(nonsensitive(output.user_data["db1"])).apt.sources.mysql.keyid == "BCA43417C3B485DD128EC6D4B7B3B788A8D3785C"
    error_message = "db1 gets MySQL's, by the key's whole fingerprint"
  }
}
