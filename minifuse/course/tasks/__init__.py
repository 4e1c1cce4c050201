"""The tasks: a file each, with `TASK`. A new file is in the registry by being here."""
