"""The papers' experiments as data, run on the simulator at the papers' size and, where it makes sense, on Spark.

experiment  what an experiment is               registry   all of them, by name
measures    numbers read off traces             simulate   the simulator as a runner
results     what came out, to keep and reread   report     the paper's numbers beside ours
plot        the paper's axes (needs matplotlib) page       everything as one HTML file
machine     scenarios of this machine's size    on_spark   Spark as a runner of these
agreement   Spark against the simulator         runs       what the command line does with all that

`flux/` has the experiments of the Flux paper, FE1 to FE7, and F12. Other papers' experiments go into folders beside it,
one module per figure, and are named in `registry.py`.
"""
