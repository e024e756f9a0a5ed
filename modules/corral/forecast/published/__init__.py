"""Published training runs: the rows of the table, values assumed for missing cells, and the error of the forecast."""
