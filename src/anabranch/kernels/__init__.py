"""What runs at a site: joins, windowed aggregates and per-row frames over Arrow tables, DuckDB inside.

    kernels.specs       what is asked for                        kernels.reference   the same answers in plain loops
    kernels.join        join                                     kernels.engine      DuckDB and its types
    kernels.aggregate   merge, close, horizon                    kernels.decimals    exact sums beyond int64
    kernels.frame       frame, trim, relevant                    kernels.rolling     frames over sorted columns

Kernels are pure: a spec and tables in, a table out. They know nothing of Spark, epochs, segments or where they run.
Nothing is imported here: the compiler needs `specs`, and must not pay for DuckDB and Arrow (0.25 s).
"""
