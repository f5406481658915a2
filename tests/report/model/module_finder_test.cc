// Which module had an address, where modules come and go, and of those that only a memory map tells of.

#include "report/model/module_finder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/test_util.h"
#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

ModuleInfo Module(uint32_t id, uint64_t start, uint64_t end, uint64_t load_ns, uint64_t unload_ns) {
  ModuleInfo module;
  module.id = ModuleId{id};
  module.start = start;
  module.end = end;
  module.load_time_ns = load_ns;
  module.unload_time_ns = unload_ns;
  return module;
}

uint32_t IdAt(const ModuleFinder& finder, uint64_t address, uint64_t time_ns) {
  const ModuleInfo* module = finder.Find(address, time_ns);
  return module == nullptr ? 0 : module->id.value;
}

TEST(ModuleFinderTest, TheNextModuleIsNotTheLastOne) {
  // The second one is larger, and met for the first time some time after it came.
  const std::vector<ModuleInfo> modules = {Module(1, 0x1000, 0x3000, 10, 100), Module(2, 0x0800, 0x5000, 150, 300),
                                           Module(3, 0x1000, 0x3000, 400, 0), Module(4, 0x9000, 0xa000, 0, 0)};
  const ModuleFinder finder(modules);
  EXPECT_EQ(IdAt(finder, 0x2000, 50), 1u);
  EXPECT_EQ(IdAt(finder, 0x2000, 120), 2u);
  EXPECT_EQ(IdAt(finder, 0x2000, 200), 2u);
  EXPECT_EQ(IdAt(finder, 0x2000, 350), 3u);
  EXPECT_EQ(IdAt(finder, 0x4000, 350), 0u);
  EXPECT_EQ(IdAt(finder, 0x9001, 350), 4u);
  EXPECT_EQ(IdAt(finder, 0xa000, 350), 4u) << "a return address behind the last call";
  EXPECT_EQ(IdAt(finder, 0xa001, 350), 0u);
}

TEST(ModuleFinderTest, WhereNoneCameBackTheNearestIsIt) {
  const std::vector<ModuleInfo> modules = {Module(1, 0x1000, 0x2000, 0, 0), Module(2, 0x3000, 0x4000, 0, 50)};
  const ModuleFinder finder(modules);
  EXPECT_EQ(IdAt(finder, 0x1800, 10), 1u);
  EXPECT_EQ(IdAt(finder, 0x3800, 10), 2u);
  EXPECT_EQ(IdAt(finder, 0x3800, 60), 0u);
  EXPECT_EQ(IdAt(finder, 0x2800, 10), 0u);
}

TEST(ModuleFinderTest, WhatOnlyAMapTellsOfIsAModuleToo) {
  TraceBuilder trace;
  trace.Module(1, format::kModulePermanent, 0x400000, 0x402000, 0x400000, "/bin/app", "id", 0);
  trace.Module(2, 0, 0x7f0000000000, 0x7f0000002000, 0x7f0000000000, "/lib/before.so", "id", 10);
  trace.ModuleUnload(2, 20);
  trace.Module(3, 0, 0x7f0000040000, 0x7f0000042000, 0x7f0000040000, "/lib/twice.so", "id", 10);
  trace.ModuleUnload(3, 20);
  trace.MemoryMap(format::MapReason::kEnd,
                  "00400000-00401000 r-xp 00000000 08:01 1    /bin/app\n"
                  "7f0000000000-7f0000001000 r--p 00000000 08:01 2    /lib/kernels.so\n"
                  "7f0000001000-7f0000003000 r-xp 00001000 08:01 2    /lib/kernels.so\n"
                  "7f0000003000-7f0000004000 rw-p 00003000 08:01 2    /lib/kernels.so\n"
                  "7f0000010000-7f0000012000 r--p 00000000 08:01 3    /lib/data.bin\n"
                  "7f0000020000-7f0000021000 r-xp 00000000 08:01 4    /lib/gone.so (deleted)\n"
                  "7f0000030000-7f0000031000 r-xp 00000000 00:00 0    [vdso]\n"
                  "7f0000040000-7f0000042000 r-xp 00000000 08:01 5    /lib/twice.so\n", 1000);
  trace.End(0, 1'000'000);
  const auto reader = Read(trace.Build());
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(ModulesOf(**reader).size(), 3u);
  const std::vector<ModuleInfo> modules = ModulesAndMappedFiles(**reader);
  ASSERT_EQ(modules.size(), 4u);
  EXPECT_EQ(modules[3].path, "/lib/kernels.so");
  EXPECT_EQ(modules[3].start, 0x7f0000000000u);
  EXPECT_EQ(modules[3].bias, 0x7f0000000000u);
  EXPECT_EQ(modules[3].end, 0x7f0000004000u);
  EXPECT_EQ(modules[3].id.value, 4u);
}

}  // namespace
}  // namespace memtrace::report
