"""Message rates on modelled networks, computed by the C++ engine in simulator/."""
