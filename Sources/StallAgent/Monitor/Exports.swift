// An app needs one import: the run loop's API, the model types of a report and Dispatch's queues are re-exported.

@_exported public import Dispatch
@_exported public import StallModel
@_exported public import StallRunLoop
