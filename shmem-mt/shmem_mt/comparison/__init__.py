"""`shmem-mt compare`: whether the second side of a comparison is worse than the first."""
