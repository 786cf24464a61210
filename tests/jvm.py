"""How the JVMs of tests run: they live for minutes, and would spend much of them on optimising code for hours."""

from __future__ import annotations

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
DRIVER = {"spark__driver__extraJavaOptions": SHORT_LIVED}
EXECUTORS = {"spark__executor__extraJavaOptions": SHORT_LIVED}
