"""Tests of what decides: settings, catalogue, physics and control, without files, processes or a cluster."""
