"""The benchmark: the same files through Spark's own streaming, DuckDB and Anabranch, answers compared.

`python -m bench --help` lists the workloads; bench/README.md says how each figure is measured.
A workload is data (`bench/workloads/`), an engine is a small adapter (`bench/engines/`), and each run of an engine
is a process of its own (`bench/worker.py`) that the parent (`bench/run.py`) watches for memory.
"""
