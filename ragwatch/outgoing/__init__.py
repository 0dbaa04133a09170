"""The HTTP client for all requests that ragwatch makes: addresses are checked, redirects refused, replies bounded."""
