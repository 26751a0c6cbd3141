"""hubauth: the formally specified reference implementation of the hub authentication protocol."""

__version__ = "0.1.0"
