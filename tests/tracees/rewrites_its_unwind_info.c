// A program that rewrites the unwind information of one of its functions between two calls
// of it, so that what was true at the first is a lie at the second. The library reads
// unwind information once, and goes on telling the truth; an unwinder that reads it each
// time goes another way. The cross-check must see that.
//
// Through() calls its argument from a frame of kTrue bytes. Sixteen bytes below its return
// address lies the address of Decoy(), where the lie says that the return address is.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void Through(void (*call)(void));
void Decoy(void);

// 16000 and 15984, written as DW_CFA_def_cfa_offset: uleb128.
static const uint8_t kTrue[] = {0x0e, 0x80, 0x7d}, kLie[] = {0x0e, 0xf0, 0x7c};
__asm__(
    ".text\n"
    ".globl Through\n"
    ".type Through, @function\n"
    "Through:\n"
    "  .cfi_startproc\n"
    "  subq $15992, %rsp\n"
    "  .cfi_def_cfa_offset 16000\n"
    "  leaq Decoy(%rip), %rax\n"
    "  addq $1, %rax\n"
    "  movq %rax, 15976(%rsp)\n"
    "  movq $0, 15984(%rsp)\n"  // what Decoy() would return to
    "  call *%rdi\n"
    "  addq $15992, %rsp\n"
    "  .cfi_def_cfa_offset 8\n"
    "  ret\n"
    "  .cfi_endproc\n"
    ".size Through, .-Through\n"
    ".globl Decoy\n"
    ".type Decoy, @function\n"
    "Decoy:\n"
    "  .cfi_startproc\n"
    "  nop\n"
    "  ret\n"
    "  .cfi_endproc\n"
    ".size Decoy, .-Decoy\n");

static void* volatile kept;
static __attribute__((noinline)) void Allocate(void) {
  kept = malloc(100);
  free(kept);
}

static void Rewrite(void) {
  struct dl_find_object object;
  if (_dl_find_object((void*)&Through, &object) != 0) exit(2);
  uint8_t* header = object.dlfo_eh_frame;
  int32_t distance;
  memcpy(&distance, header + 4, sizeof distance);
  uint8_t* entry = header + 4 + distance;
  for (uint32_t length; memcpy(&length, entry, 4), length != 0; entry += 4 + length) {
    for (uint8_t* at = entry + 4; at + sizeof kTrue <= entry + 4 + length; ++at) {
      if (memcmp(at, kTrue, sizeof kTrue) != 0) continue;
      uint8_t* page = (uint8_t*)((uintptr_t)at & ~(uintptr_t)4095);
      if (mprotect(page, 8192, PROT_READ | PROT_WRITE) != 0) exit(3);
      memcpy(at, kLie, sizeof kLie);
      return;
    }
  }
  exit(4);
}

int main(void) {
  for (int i = 0; i < 5; ++i) Through(Allocate);
  Rewrite();
  for (int i = 0; i < 3; ++i) Through(Allocate);
  puts("rewritten");
  return 0;
}
