"""The commands of the demo."""
