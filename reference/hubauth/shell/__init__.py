"""Real hubs and devices over TCP. Thin: it moves bytes, time and entropy, and decides nothing about the protocol."""
