// An app needs one import: the run loop's API and the nouns of a report come along.

@_exported public import StallModel
@_exported public import StallRunLoop
