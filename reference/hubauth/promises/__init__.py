"""What hubs promise, judged from outside: by what they are told and say, never by how they decide."""
