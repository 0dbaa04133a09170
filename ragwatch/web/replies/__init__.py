"""Types of the replies of the API, and the schema that is derived from them."""
