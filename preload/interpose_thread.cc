// What a thread says of itself. A name that was given late is written when it is given:
// when the thread has ended, nobody could ask for it.
//
// A name that another thread gives, or prctl(), is found at the end of the process, if
// the thread still lives then.

#include <pthread.h>

#include "preload/arch/arch.h"
#include "preload/client_api.h"
#include "preload/exported.h"
#include "preload/next_functions.h"
#include "preload/recorder.h"

EXPORTED int pthread_setname_np(pthread_t thread, const char* name) {
  if (memtrace::AnswerClient(thread, name)) [[unlikely]] return 0;
  const int error = memtrace::Next().pthread_setname_np(thread, name);
  // A pthread_t is the address of the thread's control block.
  if (error == 0 && thread == memtrace::arch::ThreadPointer()) memtrace::RecordThreadName(name);
  return error;
}
