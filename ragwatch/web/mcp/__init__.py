"""The door for assistants (Model Context Protocol): read-only tools over the replies of `/api/v1`."""
