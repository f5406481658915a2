// pinned_arena: a few small blocks keep a large heap resident.
//
// The program fills 300 pages of the heap with blocks of 248 bytes, 16 to a page with their headers
// of 8, and frees all but two on each of 200 pages and one on the last. Of those 200 pages
// 2 * 256 bytes are in use, and 4096 - 512 are free and cannot be given back; of the last 4096 - 256.
// That is 720640 bytes which no list of live bytes shows. The 98 pages before the last have no live
// block at all, but it lies behind them, and a heap shrinks from its end only.
//
//   expect: resident site at @block in Fill: live_blocks == 401, live_bytes == 99448
//   expect: resident site at @block in Fill: resident_bytes == 102656
//   expect: resident site at @block in Fill: pinned_bytes == 720640, pinning_blocks == 401
//   expect: resident site at @block in Fill: enclosed_bytes == 401408
//   expect: resident site at @block in Fill: untouched_bytes == 0
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { kPage = 4096, kBytes = 248, kEach = 256, kPerPage = kPage / kEach,
       kPages = 300, kPinned = 200, kBlocks = kPages * kPerPage };

static char* g_blocks[kBlocks];

// So that the next block begins a page: its header is the page's first 16 bytes.
static char* FillPage(void) {
  const uintptr_t here = (uintptr_t)malloc(24) + 16;  // of glibc, a chunk of 32 bytes, at its end
  size_t bytes = kPage - here % kPage;
  if (bytes < 32) bytes += kPage;
  return malloc(bytes - 8);
}

static void Fill(void) {
  for (int i = 0; i < kBlocks; ++i) {
    g_blocks[i] = malloc(kBytes);  // @block
    memset(g_blocks[i], 1, kBytes);
  }
}

int main(void) {
  // Everything from the one heap, and nothing kept beside it.
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  FillPage();
  Fill();
  for (int i = 0; i < kBlocks; ++i) {
    const int page = i / kPerPage, at = i % kPerPage;
    // The block in front of the first page has its last 8 bytes there.
    if (page >= 1 && page <= kPinned && (at == 0 || at == kPerPage / 2)) continue;
    if (page == kPages - 1 && at == 0) continue;
    free(g_blocks[i]);
  }
  return 0;
}
