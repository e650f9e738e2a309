"""A small system of two tiers, as the text of its system.yaml."""

from __future__ import annotations

SMALL = """\
name: small
title: Two tiers
source: none
license: MIT
tiers:
  - name: front
    title: Front
    roles: [web]
    talks_to: [back]
  - name: back
    title: Back
    roles: [postgresql]
notation: {forms: [[front, back]], example: 1/2}
settings:
  workers:
    title: Workers
    tier: front
    range: [1, 10]
    default: 4
load:
  driver: {kind: command, command: [python3, load.py]}
  model: closed
  entry: {tier: front, port: 80}
  factor: {name: users, title: Users, default: "10,20"}
  workloads:
    reads: {title: Reads, writes: false}
  default_workload: reads
  phases:
    short: {ramp_up_s: 5, run_s: 20, ramp_down_s: 2}
  default_phases: short
verify:
  requests:
    - {name: page, tier: front, port: 80, path: /}
"""


DATA = "data: {tier: back, default: tiny, profiles: {tiny: few}}\nload:"
