"""KEEP: segments, manifests, and the store they live in. Nothing is changed in place; a manifest makes an epoch."""
