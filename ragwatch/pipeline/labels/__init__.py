"""Labels by people: the samples they are asked about, and estimates corrected with their labels."""
