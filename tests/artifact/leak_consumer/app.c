/* Leaks, or does not, as it is told: "clean", "leak", "fail" (leaks as well), "crash", "keep", "words". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *volatile g_sink;
void *g_kept;

__attribute__((noinline)) static void lose_a_block(void) {
  g_sink = malloc(123);
  g_sink = NULL;
}

/* So that no register and no dead stack frame still holds the pointer. */
__attribute__((noinline)) static void wipe(void) {
  volatile char area[4096];
  for (size_t i = 0; i < sizeof area; ++i) area[i] = 0;
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : getenv("APP_MODE");
  if (mode == NULL) return 9;
  const char *third = getenv("APP_THIRD");
  if (third != NULL && strcmp(third, "a;b") != 0) return 6;
  printf("this is %s\n", mode);
  if (strcmp(mode, "words") == 0) {
    const char *words[] = {"0 ", "", "a;b", "\n]==]", "]===="};
    if (argc != 7) return 4;
    for (int i = 0; i < 5; ++i) {
      if (strcmp(argv[i + 2], words[i]) != 0) return 5;
    }
  }
  void *block = malloc(50);
  g_sink = block;
  g_sink = NULL;
  free(block);
  if (strcmp(mode, "leak") == 0 || strcmp(mode, "fail") == 0) lose_a_block();
  if (strcmp(mode, "keep") == 0) g_kept = malloc(77);
  wipe();
  if (strcmp(mode, "crash") == 0) abort();
  return strcmp(mode, "fail") == 0 ? 3 : 0;
}
