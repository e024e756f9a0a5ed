"""A declared run as a whole: training, saving, interruptions, money and power together. Each part has its own room."""
