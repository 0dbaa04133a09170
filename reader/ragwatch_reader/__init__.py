"""The cross-encoder model that ragwatch's judge of kind `local` reads with: three files, and where they lie.

| file                   | content                                                                       |
|------------------------|-------------------------------------------------------------------------------|
| `model/local.json`     | curves, thresholds, and the SHA-256 digests of the other two, which ragwatch verifies |
| `model/reader.onnx`    | the model                                                                     |
| `model/tokenizer.json` | its WordPiece vocabulary                                                      |
"""

from pathlib import Path

MODEL_FOLDER = Path(__file__).parent / "model"
"""Folder of the files of the model."""
