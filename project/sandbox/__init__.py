"""Run a kernel that somebody pasted in a process that can only compute: no file, no network, no process, little memory."""
