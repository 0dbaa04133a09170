"""Read-only tools for assistants (Model Context Protocol) over the replies of `/api/v1`."""
