"""Configuration of the PostgreSQL store."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from ragwatch.errors import ConfigError
from ragwatch.stores.encryption import EncryptionOptions, TextCipher
from ragwatch.stores.kept_texts import Texts

EXTRA = "postgres"


class Options(BaseModel):
    """Configuration of the PostgreSQL store. The texts are those of samples and verdicts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: SecretStr | None = Field(
        None, description="Address of the database: postgresql://USER:PASSWORD@HOST/DATABASE."
    )
    url_file: Path | None = Field(None, description="File with the address, instead of `url`.")
    database_schema: str = Field(
        "ragwatch", pattern=r"^[a-z_][a-z0-9_]{0,62}$", description="Database schema of the tables; it is created."
    )
    connections: int = Field(4, ge=1, le=64, description="Maximum number of connections of this worker.")
    timeout_seconds: float = Field(60.0, gt=0.0, le=3600.0, description="Time limit of one statement.")
    texts: Texts = Field(Texts.ALL, description="Texts of which answers are kept after judging; scores always are.")
    encryption: EncryptionOptions | None = Field(None, description="Keys that encrypt stored texts.")

    @model_validator(mode="after")
    def _check_one(self) -> Options:
        if (self.url is None) == (self.url_file is None):
            raise ValueError("give either url or url_file")
        return self

    def address(self) -> str:
        """Return the address, with the password.

        Raises:
            ConfigError: The file cannot be read, or is empty.
        """
        if self.url is not None:
            return self.url.get_secret_value()
        path = self.url_file or Path()
        try:
            text = path.read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "is not UTF-8"
            raise ConfigError(
                f"store.url_file: {path} cannot be read: {reason}; give a file with one address"
            ) from error
        if not text:
            raise ConfigError(f"store.url_file: {path} is empty; give a file with one address")
        return text

    def cipher(self) -> TextCipher | None:
        """Read the keys; None without encryption.

        Raises:
            ConfigError: A key cannot be read, or the extra is not installed.
        """
        return None if self.encryption is None else self.encryption.cipher()
