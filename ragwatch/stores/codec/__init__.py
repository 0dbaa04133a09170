"""Between a value and its column: which texts are kept, compressed, encrypted."""
