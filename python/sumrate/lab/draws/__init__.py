"""Random conditions of `fbdt-world` on real sockets, beside their simulation."""
