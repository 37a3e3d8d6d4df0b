"""SHMEM-MT: runs OpenSHMEM benchmark programs, checks them, and reports what they measured."""

__version__ = "0.1.0"
