"""Integrations with other libraries: Stable-Baselines3, ONNX, video, experiment trackers."""
