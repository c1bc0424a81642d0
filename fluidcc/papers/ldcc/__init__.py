"""LDCC, with NADA, GCC, TCP and UDP beside it."""
