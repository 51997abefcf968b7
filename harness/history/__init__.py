"""What was invoked, answered and observed: recorded while it happens, sealed afterwards, opened to be judged."""

from harness.history.lines import FaultLine, Line, ObservationLine, OperationLine, ProcessLine, RecordLine
from harness.history.recorder import Recorder
from harness.history.store import SealedHistory, open_history, read_meta, seal

__all__ = [
    "FaultLine",
    "Line",
    "ObservationLine",
    "OperationLine",
    "ProcessLine",
    "RecordLine",
    "Recorder",
    "SealedHistory",
    "open_history",
    "read_meta",
    "seal",
]
