/* frees_twice_unnoticed: gives a block back that it gave back before, where glibc does not notice: the second time is
 * not the next one of that size, and the cache of the thread was full at the first. */
#include <stdlib.h>

static __attribute__((noinline)) void* make(size_t bytes) { return malloc(bytes); }
static __attribute__((noinline)) void give_back(void* block) { free(block); }
static __attribute__((noinline)) void give_back_again(void* block) { free(block); }

int main(void) {
  void* volatile blocks[9];
  for (int i = 0; i < 9; ++i) blocks[i] = make(24);
  for (int i = 0; i < 9; ++i) give_back(blocks[i]);
  give_back_again(blocks[7]);
  return 0;
}
