"""Shared helpers that know nothing about reinforcement learning."""
