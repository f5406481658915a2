// One leak of each of memcheck's kinds, in functions of these names. With an argument it exits
// with that status; "abort" ends it by a signal; "none" leaks nothing.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
  struct node* volatile next;
  char rest[24];
};

struct node* g_reachable;
char* g_inside;

__attribute__((noinline)) static void lose_definitely(void) {
  for (int i = 0; i < 3; ++i) {
    char* volatile block = malloc(100);
    block = NULL;
    (void)block;
  }
}

__attribute__((noinline)) static void lose_indirectly(void) {
  struct node* volatile head = calloc(1, sizeof(struct node));
  head->next = calloc(1, sizeof(struct node));
  head = NULL;
  (void)head;
}

__attribute__((noinline)) static void lose_possibly(void) { g_inside = (char*)malloc(200) + 50; }

__attribute__((noinline)) static void keep_reachable(void) { g_reachable = calloc(1, sizeof(struct node)); }

// Leaves no address of a block where those functions had their frames, nor in registers.
__attribute__((noinline)) static void scrub(void) {
  volatile char stack[16384];
  for (size_t i = 0; i < sizeof(stack); ++i) stack[i] = (char)i;
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "none") == 0) return 0;
  lose_definitely();
  lose_indirectly();
  lose_possibly();
  keep_reachable();
  scrub();
  if (argc > 1 && strcmp(argv[1], "abort") == 0) abort();
  return argc > 1 ? atoi(argv[1]) : 0;
}
