"""Which rows count: the watermark in plain Python, told from the rows and the cut alone.

A row is late in epoch e if its event time is before the watermark of the epochs before e. Per stream that is the
greatest event time seen minus the stream's delay; the flow's is the least over the streams that feed a stateful
operator, and there is none before each of them has been seen. A row without an event time never counts. Streams that
feed no stateful operator have no late rows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from anabranch.testing.script import Epoch, Row, Stream


def counted(streams: Sequence[Stream], epochs: Sequence[Epoch], stateful: Collection[str]) -> dict[str, list[Row]]:
    """Per stream, the rows that were not late."""
    kept: dict[str, list[Row]] = {s.name: [] for s in streams}
    newest: dict[str, int] = {}
    watermark: int | None = None
    for epoch in epochs:
        for stream in streams:
            for row in epoch.get(stream.name, ()):
                if stream.name not in stateful:
                    kept[stream.name].append(row)
                    continue
                time = stream.time(row)
                if time is not None and (watermark is None or time >= watermark):
                    kept[stream.name].append(row)
        for stream in streams:
            times = [stream.time(r) for r in epoch.get(stream.name, ())] if stream.name in stateful else []
            for time in times:
                if time is not None:
                    newest[stream.name] = max(time, newest.get(stream.name, time))
        if stateful and set(newest) == set(stateful):
            mark = min(newest[s.name] - s.delay_us for s in streams if s.name in stateful)
            watermark = mark if watermark is None else max(watermark, mark)
    return kept
