#include "tests/e2e/memcheck.h"

namespace memtrace::e2e {

bool HaveValgrind() { return Exists("/usr/bin/valgrind"); }

Words MemcheckCommand(const Words& more) {
  Words words = {"valgrind", "--aspace-minaddr=0x100000000", "--leak-check=full"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace memtrace::e2e
