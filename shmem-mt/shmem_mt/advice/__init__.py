"""What a machine's measurements advise: how many PEs and threads, which message size, which synchronization."""
