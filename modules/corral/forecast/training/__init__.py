"""The training of one model: parameters, FLOPs, memory, communication, speed, and the error of the forecast. Pure."""
