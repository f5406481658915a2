// StackWalk beside what it saves: each stack expanded anew, and compared frame by frame.

#include "report/render/stack_walk.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "tests/report/render/render_made_up.h"

namespace memtrace::report::render {
namespace {

constexpr uint64_t kModuleStart = 0x400000;

// Of 40 addresses two each have the same names, and some of them two names, one inlined.
symbolizer::ModuleResult NamesOf(std::span<const symbolizer::Address> addresses) {
  symbolizer::ModuleResult result;
  result.state = symbolizer::ModuleState::kDebugInfo;
  for (const symbolizer::Address& address : addresses) {
    const uint64_t name = address.offset / 16 / 2;
    std::vector<symbolizer::Frame> frames;
    if (name % 3 == 0) {
      frames.push_back({.function = absl::StrCat("inlined", name), .file = "a.h", .inlined = true});
    }
    frames.push_back({.function = absl::StrCat("function", name), .file = "a.c"});
    result.frames.push_back(std::move(frames));
  }
  return result;
}

TEST(StackWalkTest, HasTheFramesOfEachStackAndANumberForThoseThatReadAlike) {
  std::mt19937 random(11);
  StackTable stacks;
  std::vector<StackId> some = {StackId{}};
  for (int i = 0; i < 3'000; ++i) {
    // Mostly a step more than one of the latest.
    const size_t latest = std::min<size_t>(some.size(), 8);
    const StackId parent = some[random() % 10 == 0 ? 0 : some.size() - 1 - random() % latest];
    some.push_back(random() % 200 == 0
                       ? stacks.Intern({}, static_cast<uint64_t>(format::StackMarker::kUnreadable),
                                       format::kNoModule)
                       : stacks.Intern(parent, kModuleStart + 16 * (random() % 40), kApp));
  }
  Analysis analysis;
  ModuleInfo module;
  module.id = {kApp};
  module.path = "/work/app";
  module.start = module.bias = kModuleStart;
  module.end = kModuleStart + 0x10000;
  analysis.modules.push_back(module);
  const SiteSymbols symbols(
      analysis, stacks,
      [](const symbolizer::Module&, std::span<const symbolizer::Address> addresses) {
        return NamesOf(addresses);
      },
      {}, some);

  StackWalk walk(symbols);
  std::map<std::vector<uint32_t>, uint32_t> key_of;
  std::map<uint32_t, std::vector<uint32_t>> read_as;
  size_t alike = 0;
  for (int i = 0; i < 20'000; ++i) {
    const size_t at = static_cast<size_t>(i) % some.size();
    const StackId stack = some[random() % 4 == 0 ? random() % some.size() : at];
    walk.GoTo(stack);
    std::vector<const Frame*> frames;
    std::vector<uint32_t> reads;
    symbols.ForEachFrame(stack, [&](const Frame& frame) {
      frames.push_back(&frame);
      reads.push_back(frame.identity);
    });
    ASSERT_EQ(std::vector<const Frame*>(walk.frames().begin(), walk.frames().end()), frames) << i;
    if (random() % 3 == 0) continue;  // not every stack is asked for its number
    const uint32_t key = walk.Key();
    EXPECT_EQ(key == 0, frames.empty());
    const auto [known, is_new] = key_of.try_emplace(reads, key);
    ASSERT_EQ(known->second, key) << i;
    const auto [other, first] = read_as.try_emplace(key, reads);
    ASSERT_EQ(other->second, reads) << i;
    alike += !is_new;
  }
  EXPECT_GT(key_of.size(), 500u);
  EXPECT_GT(alike, 5'000u);
}

}  // namespace
}  // namespace memtrace::report::render
