/* gconv_comes_and_goes: glibc loads the modules of character sets and unloads them by itself,
 * unseen by any dlclose; two of them, of our own in GCONV_PATH, are laid out alike.
 *
 *   gconv_comes_and_goes DIRECTORY ROUNDS */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <iconv.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

int g_round;
static volatile int g_sink;

/* A function for each set, so that its name is on the stack while its module is in use. */
#define CHARACTER_SET(name, text)                                        \
  __attribute__((noinline)) static void Open##name(void) {               \
    iconv_t state = iconv_open("UTF-8", text);                           \
    if (state == (iconv_t)-1) exit(3);                                   \
    char in[64] = {0}, out[256], *from = in, *to = out;                  \
    size_t in_left = sizeof(in), out_left = sizeof(out);                 \
    iconv(state, &from, &in_left, &to, &out_left);                       \
    iconv_close(state);                                                  \
    g_sink = g_sink + 1;                                                 \
  }
CHARACTER_SET(Utf16, "UTF-16")
CHARACTER_SET(Utf32, "UTF-32")
CHARACTER_SET(Unicode, "UNICODE")
CHARACTER_SET(Iso2022Kr, "ISO-2022-KR")
CHARACTER_SET(Red, "RED")
CHARACTER_SET(Blue, "BLUE")

__attribute__((noinline)) static void Use(void* (*allocate)(size_t)) {
  free(allocate(10000 + (size_t)g_round));
  g_sink = g_sink + 1;
}

static int CountUnloads(struct dl_phdr_info* info, size_t bytes, void* unloads) {
  (void)bytes;
  *(unsigned long long*)unloads = info->dlpi_subs;
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int rounds = atoi(argv[2]);
  char path[1000];
  snprintf(path, sizeof(path), "%s/libplugin_red.so", argv[1]);
  /* A set is unloaded when three others were closed after it: BLUE comes where RED was. */
  void (*const open[])(void) = {OpenRed,  OpenUtf16, OpenUtf32, OpenUnicode, OpenIso2022Kr,
                                OpenBlue, OpenUtf32, OpenUtf16, OpenUnicode, OpenIso2022Kr};
  for (g_round = 0; g_round < rounds; ++g_round) {
    open[g_round % 10]();
    if (g_round % 30 == 29) { /* seldom, for dlclose() is seen and clears the air */
      void* plugin = dlopen(path, RTLD_NOW);
      if (plugin == NULL) return 4;
      Use((void* (*)(size_t))dlsym(plugin, "Allocate"));
      dlclose(plugin);
      Expect(10000 + (size_t)g_round, 1, "RedInner Allocate Use main");
    }
  }
  Expect(40001, 3L * rounds / 10, "RedCharsetInner gconv_init");
  Expect(40002, 3L * rounds / 10, "BlueCharsetInner gconv_init");
  unsigned long long unloads = 0;
  dl_iterate_phdr(CountUnloads, &unloads);
  Tell("unloads %llu\n", unloads - (unsigned long long)(rounds / 30));
  return 0;
}
