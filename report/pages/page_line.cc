#include "report/pages/page_line.h"

#include <algorithm>
#include <array>

namespace memtrace::report::pages {
namespace {

bool Shared(const Page& page) {
  if (page.is(Page::kCounted)) return page.mapped > 1;
  return !page.is(Page::kExclusive);
}

}  // namespace

char PageCharacter(const Page& page) {
  if (page.is(Page::kSwapped)) return 'w';
  if (!page.is(Page::kPresent)) return '.';
  if (page.is(Page::kZero)) return 'z';
  if (page.is(Page::kHuge)) return 'H';
  if (!Shared(page)) return page.is(Page::kOfFile) ? 'f' : 'a';
  if (!page.is(Page::kCounted)) return 's';
  return page.mapped > 9 ? '+' : static_cast<char>('0' + page.mapped);
}

PageLine DrawPages(const MappedRegion& region, uint64_t page_bytes, size_t width) {
  const Mapping& m = region.mapping;
  const uint64_t pages = std::max<uint64_t>(m.bytes() / page_bytes, 1);
  PageLine line;
  line.pages_each = (pages + width - 1) / width;
  line.characters.assign((pages + line.pages_each - 1) / line.pages_each, '.');
  std::array<uint64_t, 128> counts{};
  size_t cell = 0;
  const auto close = [&] {
    const auto most = std::max_element(counts.begin(), counts.end());
    if (*most != 0) line.characters[cell] = static_cast<char>(most - counts.begin());
    counts.fill(0);
  };
  for (const Page& page : region.pages) {
    const uint64_t at = (page.address - m.start) / page_bytes / line.pages_each;
    if (at >= line.characters.size()) break;
    if (at != cell) close();
    cell = at;
    ++counts[static_cast<size_t>(PageCharacter(page))];
  }
  close();
  return line;
}

PageStates CountStates(const MappedRegion& region) {
  PageStates states;
  for (const Page& page : region.pages) {
    if (page.is(Page::kSwapped)) {
      ++states.swapped;
    } else if (page.is(Page::kZero)) {
      ++states.zero;
    } else if (Shared(page)) {
      ++states.shared;
    } else if (page.is(Page::kOfFile)) {
      ++states.file_own;
    } else {
      ++states.own;
    }
    if (page.is(Page::kHuge)) ++states.huge;
  }
  return states;
}

}  // namespace memtrace::report::pages
