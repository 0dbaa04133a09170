"""Configuration of the PostgreSQL store."""

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from ragwatch.stores.encryption import EncryptionOptions, TextCipher
from ragwatch.stores.kept_texts import TEXT_SEARCH, Texts


class Options(BaseModel):
    """Configuration of the PostgreSQL store. The texts are those of samples and verdicts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: SecretStr = Field(
        min_length=1, description="Address of the database: postgresql://USER:PASSWORD@HOST/DATABASE."
    )
    database_schema: str = Field(
        "ragwatch", pattern=r"^[a-z_][a-z0-9_]{0,62}$", description="Database schema of the tables; it is created."
    )
    connections: int = Field(4, ge=1, le=64, description="Maximum number of connections of this worker.")
    timeout_seconds: float = Field(60.0, gt=0.0, le=3600.0, description="Time limit of one statement.")
    texts: Texts = Field(Texts.ALL, description="Texts of which answers are kept after judging; scores always are.")
    text_search: bool = Field(default=True, description=TEXT_SEARCH)
    encryption: EncryptionOptions | None = Field(None, description="Keys that encrypt stored texts.")

    def cipher(self) -> TextCipher | None:
        """Read the keys, as `EncryptionOptions.cipher`; None without encryption."""
        return None if self.encryption is None else self.encryption.cipher()
