"""Labels: what people say of answers, which answers they are asked about, and how judges agree with them."""
