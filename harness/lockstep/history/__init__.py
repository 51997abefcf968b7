"""What was invoked, answered and observed: recorded while it happens, sealed afterwards, opened to be judged."""

from lockstep.history.lines import FaultLine, Line, ObservationLine, OperationLine, ProcessLine, RecordLine
from lockstep.history.recorder import Recorder
from lockstep.history.store import SealedHistory, open_history, read_meta, seal

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
