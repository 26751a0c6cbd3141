"""The protocol as one pure function. Nothing here reads a clock, a socket, a file or a random source."""
