/* misaligned_stack: calls libc with a stack pointer that is 8 off what the calling convention asks
 * for, as assembly does, and all that is compiled with -mpreferred-stack-boundary=3. glibc lets it
 * pass.
 *
 *   misaligned_stack    says "done" */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { kRounds = 20000, kMappings = 10 };

void CallMisaligned(void (*function)(void));
asm(".text\n"
    ".globl CallMisaligned\n"
    ".type CallMisaligned, @function\n"
    "CallMisaligned:\n"
    ".cfi_startproc\n"
    "  call *%rdi\n"  /* without the 8 bytes that would make up for the return address */
    "  ret\n"
    ".cfi_endproc\n"
    ".size CallMisaligned, .-CallMisaligned\n");

__attribute__((noinline)) static void Allocate(void) {
  void* kept[64] = {NULL};
  for (int i = 0; i < kRounds; ++i) {
    void** slot = &kept[i % 64];
    free(*slot);
    const size_t bytes = (size_t)(i * 37 % 20000 + 1);
    *slot = i % 3 == 0 ? calloc(1, bytes) : i % 3 == 1 ? malloc(bytes) : realloc(NULL, bytes);
  }
  for (int i = 0; i < 64; ++i) free(kept[i]);
}

__attribute__((noinline)) static void Map(void) {
  for (int i = 0; i < kMappings; ++i) {
    void* where = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    where = mremap(where, 1 << 20, 2 << 20, MREMAP_MAYMOVE);
    munmap(where, 2 << 20);
  }
}

__attribute__((noinline)) static void TellTheKernel(void) {
  struct rlimit limit;
  getrlimit(RLIMIT_CORE, &limit);
  setrlimit(RLIMIT_CORE, &limit);
  if (fork() == 0) _exit(0);
}

__attribute__((noinline)) static void Leave(void) {
  if (write(1, "done\n", 5) != 5) _exit(1);
  exit(7);
}

int main(void) {
  CallMisaligned(Allocate);
  CallMisaligned(Map);
  CallMisaligned(TellTheKernel);
  CallMisaligned(Leave);
  return 1;
}
