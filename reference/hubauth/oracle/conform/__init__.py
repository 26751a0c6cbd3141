"""Black-box conformance: one hub under test, everything around it played by this package, judged by the core."""
