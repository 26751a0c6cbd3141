"""For those who write another hub: vectors, and the reference to ask step by step."""
