"""How a model trains: its parameters and FLOPs, memory, communication, speed, and how well we predict it. Pure."""
