"""What is measured: libraries with their launchers, fabrics, hosts, and the machine."""
