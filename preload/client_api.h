// ClientApi: the functions of memtrace.h, and how a program comes to them.
//
// Nothing is exported for them. The program calls pthread_setname_np(), which is wrapped
// anyway, with a text that asks; see memtrace.h for why.

#ifndef MEMTRACE_PRELOAD_CLIENT_API_H_
#define MEMTRACE_PRELOAD_CLIENT_API_H_

namespace memtrace {

// True: `text`, told of no thread, is the question of memtrace.h, and has been answered. Never
// reads beyond the end of `text`.
bool AnswerClient(unsigned long thread, const char* text);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_CLIENT_API_H_
