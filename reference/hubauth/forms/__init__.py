"""Values of the core and rows of a trace in their one JSON form."""
