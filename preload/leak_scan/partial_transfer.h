// PartialTransfer: the rest of a transfer that a scan's signal interrupted.
//
// write, send, recv with MSG_WAITALL, getrandom and others return how far they came when a handler
// has run. A program that handles no signals, and whose descriptors block, has all of them, or an
// error. So the handler goes on with the rest: it waits until there is room, or bytes, as long as
// the socket's timeout says, and moves what can be moved at once. It ends, with what there is so
// far, where the call itself would have: by a signal of the program's, whether its handler restarts
// calls or not, when time is up, at the end of a stream, and at an error, which stays with the
// socket for the next call.
//
// TCP and AF_UNIX streams, pipes (since Linux 6.4) and random bytes. Files of disks no signal
// interrupts; sendfile, splice and the like come short for other reasons as well.

#ifndef MEMTRACE_PRELOAD_LEAK_SCAN_PARTIAL_TRANSFER_H_
#define MEMTRACE_PRELOAD_LEAK_SCAN_PARTIAL_TRANSFER_H_

#include <cstddef>

namespace memtrace {

inline constexpr size_t kMostTransferred = 0x7ffff000;  // by one call

// Goes on with the call of this number, which returned more than 0. `context`: the ucontext of the
// handler that interrupted it; afterwards it has the result that the call would have had.
void GoOnTransferring(void* context, long call);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_LEAK_SCAN_PARTIAL_TRANSFER_H_
