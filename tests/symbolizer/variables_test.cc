// Variables and functions of this test itself, by their symbols.

#include "symbolizer/variables.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "symbolizer/symbolizer_process.h"

__attribute__((used)) int g_table_of_the_test[16] = {1};
__attribute__((used)) static int g_local_of_the_test[2] = {1, 2};
__attribute__((used)) thread_local uint64_t t_of_the_test[3] = {7};

namespace some_name {
__attribute__((used)) long g_scoped[2] = {1};
}

namespace memtrace::symbolizer {
namespace {

uint64_t Bias() {
  uint64_t bias = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        *static_cast<uint64_t*>(data) = info->dlpi_addr;
        return 1;  // the first is the program
      },
      &bias);
  return bias;
}

uint64_t ThreadLocalOffset(const void* address) {
  uint64_t offset = 0;
  std::pair<const void*, uint64_t*> asked = {address, &offset};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        const auto& [of, result] = *static_cast<std::pair<const void*, uint64_t*>*>(data);
        *result = static_cast<uint64_t>(static_cast<const char*>(of) -
                                        static_cast<const char*>(info->dlpi_tls_data));
        return 1;
      },
      &asked);
  return offset;
}

VariablesResult Find(const std::vector<VariableQuery>& queries, const std::string& build_id = "") {
  return SymbolizerProcess({}).FindVariables({"/proc/self/exe", build_id}, queries);
}

TEST(VariablesTest, AreFoundByAnyAddressInThem) {
  const auto offset = [](const void* address) { return reinterpret_cast<uint64_t>(address) - Bias(); };
  const VariablesResult found = Find({{offset(&g_table_of_the_test[0]), false},
                                      {offset(&g_table_of_the_test[15]) + 3, false},
                                      {offset(&g_local_of_the_test[1]), false},
                                      {offset(&some_name::g_scoped[1]), false},
                                      {ThreadLocalOffset(&t_of_the_test[2]), true}});
  EXPECT_EQ(found.message, "");
  ASSERT_EQ(found.variables.size(), 5u);
  EXPECT_EQ(found.variables[0].name, "g_table_of_the_test");
  EXPECT_EQ(found.variables[1].name, "g_table_of_the_test");
  EXPECT_EQ(found.variables[1].start, offset(&g_table_of_the_test[0]));
  EXPECT_EQ(found.variables[2].name, "g_local_of_the_test");
  EXPECT_EQ(found.variables[3].name, "some_name::g_scoped");
  EXPECT_EQ(found.variables[4].name, "t_of_the_test");
  EXPECT_EQ(found.variables[4].start, ThreadLocalOffset(&t_of_the_test[0]));
}

TEST(VariablesTest, HaveNoNameWhereThereIsNone) {
  // A function is none, nor is what no symbol covers; and thread-local ones are others.
  const auto code = reinterpret_cast<uint64_t>(&Bias) - Bias();
  const VariablesResult found = Find({{code, false},
                                      {std::numeric_limits<uint64_t>::max(), false},
                                      {ThreadLocalOffset(&t_of_the_test[0]), false}});
  for (const Variable& variable : found.variables) EXPECT_NE(variable.name, "t_of_the_test");
  EXPECT_EQ(found.variables.at(0).name, "");
  EXPECT_EQ(found.variables.at(1).name, "");
}

TEST(VariablesTest, OfAnotherBuildAreNotLookedUp) {
  const VariablesResult found = Find({{0, false}}, "another");
  EXPECT_NE(found.message, "");
  EXPECT_EQ(found.variables.at(0).name, "");
  EXPECT_NE(SymbolizerProcess({}).FindVariables({"/nowhere/app", ""}, {}).message, "");
}

TEST(VariablesTest, AnAnswerIsDecodedOrRefused) {
  VariablesResult result;
  result.message = "why";
  result.variables = {{"a", 8}, {"", 0}};
  const std::string bytes = EncodeVariables(result);
  VariablesResult again;
  ASSERT_TRUE(DecodeVariables(bytes, 2, &again));
  EXPECT_EQ(again.message, "why");
  EXPECT_EQ(again.variables[0].name, "a");
  EXPECT_EQ(again.variables[0].start, 8u);
  EXPECT_FALSE(DecodeVariables(bytes, 1, &again));
  EXPECT_FALSE(DecodeVariables(bytes, 3, &again));
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(DecodeVariables(bytes.substr(0, length), 2, &again)) << length;
  }
  EXPECT_FALSE(DecodeVariables(std::string(16, '\xff'), 2, &again));
}

TEST(NamedFunctionsTest, OperatorNewIsWhereItIs) {
  Dl_info info;
  const auto address = reinterpret_cast<uint64_t>(dlsym(RTLD_DEFAULT, "_Znam"));
  ASSERT_NE(dladdr(reinterpret_cast<void*>(address), &info), 0);
  const std::string_view names[] = {"_Znwm", "_Znam"};
  SymbolizerProcess process({});
  const auto ranges = process.FindNamedFunctions({info.dli_fname, ""}, names);
  EXPECT_GE(ranges.size(), 4u);  // nothrow and aligned ones as well
  const uint64_t offset = address - reinterpret_cast<uint64_t>(info.dli_fbase);
  int found = 0;
  for (const NamedRange& range : ranges) {
    EXPECT_LT(range.begin, range.end);
    found += range.begin <= offset && offset < range.end;
  }
  EXPECT_EQ(found, 1);
  EXPECT_TRUE(process.FindNamedFunctions({"/nowhere/lib.so", ""}, names).empty());
}

}  // namespace
}  // namespace memtrace::symbolizer
