"""The experiments of the Flux paper (sections 4 to 6), and one of our own on what it leaves open."""
