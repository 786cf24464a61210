"""DECIDE: views, policies, the guard and the controller. Knows neither Spark nor clocks; every driver has the same."""
