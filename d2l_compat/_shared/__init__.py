"""Code shared by the frameworks' packages, a module for each topic; no framework is imported here."""
