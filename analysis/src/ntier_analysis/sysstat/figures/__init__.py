"""Counters and levels -> the figures that sysstat shows, by its definitions: a function for each kind of activity."""

from ntier_analysis.sysstat.figures.cpus import cpu, frequency, interrupts, softnet, weighted_frequency
from ntier_analysis.sysstat.figures.devices import (
    battery,
    disk,
    fan,
    filesystem,
    interface,
    interface_errors,
    temperature,
    usb,
    voltage,
)
from ntier_analysis.sysstat.figures.memory import hugepages, memory, pressure, queue
from ntier_analysis.sysstat.figures.usual import Columns, levels, new_rates, rates, rates_or_zero, serial

__all__ = [
    "Columns", "battery", "cpu", "disk", "fan", "filesystem", "frequency", "hugepages", "interface", "interface_errors",
    "interrupts", "levels", "memory", "new_rates", "pressure", "queue", "rates", "rates_or_zero", "serial", "softnet",
    "temperature", "usb", "voltage", "weighted_frequency",
]  # fmt: skip
