output "user_data" {
  description = "Node -> cloud-init's user data. Holds the machine's host key."
  value       = local.user_data
  sensitive   = true
}
