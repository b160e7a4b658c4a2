"""Built-in plugins; the config names them by dotted name, like any other plugin."""
