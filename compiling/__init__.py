"""How the package is compiled. Used when it is built; nothing of it runs, or is there, where the package is installed."""
