"""One judge of what hubs were seen to do: by the rules, row by row."""
