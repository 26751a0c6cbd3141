"""How the package is compiled. Needed when it is built, and not there where it is installed."""
