// Defines epoll_wait, epoll_pwait, epoll_pwait2, poll, ppoll, select and pselect. A program that links this module calls
// these instead of libc's, and so do its libraries. It declares nothing: libc's headers do.
#pragma once
