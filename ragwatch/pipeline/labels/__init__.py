"""Labels by people: which samples they get, and how labels correct the estimates."""
