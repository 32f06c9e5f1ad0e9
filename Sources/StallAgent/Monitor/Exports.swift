// An app needs one import: the run loop's API, the nouns of a report and Dispatch's queues come along.

@_exported public import Dispatch
@_exported public import StallModel
@_exported public import StallRunLoop
