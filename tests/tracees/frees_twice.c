// frees_twice: gives a block back that it gave back before. glibc ends it by SIGABRT.
// frees_twice inside: an address in the midst of a block.

#include <stdlib.h>

static __attribute__((noinline)) char* make(void) { return malloc(100); }
static __attribute__((noinline)) void give_back(char* block) { free(block); }
static __attribute__((noinline)) void give_back_again(char* block) { free(block); }

int main(int argc, char** argv) {
  (void)argv;
  char* volatile block = make();
  if (argc > 1) {
    give_back_again(block + 16);
    return 0;
  }
  give_back(block);
  give_back_again(block);
  return 0;
}
