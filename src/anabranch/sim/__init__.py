"""RUN, simulated: the same control and routing code as on Spark, driven in virtual time at the papers' size.

scenario  what is simulated, as data          lanes     rows between producers and sites
keys      which cell a producer's row is of   stage     producers, lanes and sites, a quantum at a time
kernel    virtual time and what is due in it  spill     what a site does when its memory is short
network   transfers that share bandwidth      mover     the protocol that moves a cell
rings     queues of small numbers, in bulk
rounds    views to the controller and back    trace     what was measured and what happened
world     all of it, from a scenario
"""
