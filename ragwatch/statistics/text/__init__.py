"""Texts: words, letters, scripts, sentences that cite."""
