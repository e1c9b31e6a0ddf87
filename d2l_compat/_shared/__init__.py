"""What the faces share, a room for each topic; no framework is imported here."""
