"""What the lexical judge reads with: words, sentences, claims, features. Pure: text in, values out."""
