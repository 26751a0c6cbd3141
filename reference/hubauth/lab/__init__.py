"""What tests, model tests and generators share. Nothing that hubauth itself runs imports it."""
