"""What a change concerns: run a check only where something that it depends on is another."""
