// Each call's cost in a program that has no interposed functions. See Benchmarks/CallCosts/Blocking.

import CCallCosts
import StallAgent

measureCalls("plain") { _, body in body() }
measureBlocking("plain") { body in body() }
