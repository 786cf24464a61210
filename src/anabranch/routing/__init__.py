"""WHERE: from a key's hash to a cell, and from a cell to the site that owns it. Knows neither Spark nor clocks."""
