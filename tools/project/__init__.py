"""Generate parts of documents, build the package, check what is published, and summarize reports."""
