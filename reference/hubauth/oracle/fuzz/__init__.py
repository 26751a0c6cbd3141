"""Random inputs for somebody's own state machine, compared with the reference step by step."""
