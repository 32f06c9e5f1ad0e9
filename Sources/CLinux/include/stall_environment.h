// The environment, as far as the program may trust it.
#pragma once

extern char *_Nullable secure_getenv(const char *_Nonnull name);  // not in Swift's Glibc module

/// The value of an environment variable; NULL if it is not set, or in a program with more rights than its caller
/// (setuid, file capabilities).
static inline const char *_Nullable stall_environment(const char *_Nonnull name) { return secure_getenv(name); }
