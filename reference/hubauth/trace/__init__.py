"""The log of one hub as rows: format, recording, replay, explanation."""
