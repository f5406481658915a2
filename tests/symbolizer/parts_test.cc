// The small parts: address map, paths, sysroot, demangling, byte cursor.

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "symbolizer/abbreviations.h"
#include "symbolizer/address_map.h"
#include "symbolizer/byte_cursor.h"
#include "symbolizer/demangle.h"
#include "symbolizer/source_paths.h"
#include "symbolizer/sysroot.h"
#include "tests/symbolizer/fixture_program.h"

namespace memtrace::symbolizer {
namespace {

namespace fs = std::filesystem;

TEST(AddressMapTest, TheInnermostRangeWinsAndTheOuterResumes) {
  AddressMap<char> map;
  map.Add(10, 50, 'a');
  map.Add(20, 30, 'b');
  map.Add(22, 24, 'c');
  map.Build();
  std::string found;
  for (uint64_t address : {9, 10, 19, 20, 22, 23, 24, 29, 30, 49, 50}) {
    const char* value = map.Find(address);
    found += value == nullptr ? '-' : *value;
  }
  EXPECT_EQ(found, "-aabccbbaa-");
}

TEST(AddressMapTest, TheShorterOfTwoStartsAndTheLastOfEqualRangesWins) {
  AddressMap<char> map;
  map.Add(0, 10, 'x');
  map.Add(0, 20, 'y');
  map.Add(30, 40, 'p');
  map.Add(30, 40, 'q');
  map.Build();
  EXPECT_EQ(*map.Find(5), 'x');
  EXPECT_EQ(*map.Find(15), 'y');
  EXPECT_EQ(*map.Find(35), 'q');
}

TEST(AddressMapTest, IgnoresEmptyAndInvertedRangesAndReachesTheLastAddress) {
  AddressMap<char> map;
  map.Add(5, 5, 'e');
  map.Add(9, 3, 'i');
  map.Add(UINT64_MAX - 1, UINT64_MAX, 'z');
  map.Build();
  EXPECT_EQ(map.Find(5), nullptr);
  EXPECT_EQ(map.Find(4), nullptr);
  EXPECT_EQ(*map.Find(UINT64_MAX - 1), 'z');
  EXPECT_EQ(map.Find(UINT64_MAX), nullptr);
}

// The definition, address by address: of the ranges around it the one that
// starts last; then the shortest; then the last added.
TEST(AddressMapTest, AgreesWithTheDefinitionOnRandomRanges) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    struct Range {
      uint64_t begin, end;
    };
    std::vector<Range> ranges(random() % 12);
    AddressMap<size_t> map;
    for (size_t i = 0; i < ranges.size(); ++i) {
      ranges[i] = {random() % 40, random() % 40};
      map.Add(ranges[i].begin, ranges[i].end, i);
    }
    map.Build();
    for (uint64_t address = 0; address < 41; ++address) {
      std::optional<size_t> best;
      for (size_t i = 0; i < ranges.size(); ++i) {
        const Range& range = ranges[i];
        if (address < range.begin || address >= range.end) continue;
        const bool better = !best.has_value() || range.begin > ranges[*best].begin ||
                            (range.begin == ranges[*best].begin && range.end <= ranges[*best].end);
        if (better) best = i;
      }
      const size_t* found = map.Find(address);
      ASSERT_EQ(found != nullptr, best.has_value()) << "address " << address;
      if (found != nullptr) {
        ASSERT_EQ(*found, *best) << "address " << address;
      }
    }
  }
}

TEST(SourcePathTest, IsCleanedAsText) {
  EXPECT_EQ(CleanPath("/a/b/../c/./d//e.c"), "/a/c/d/e.c");
  EXPECT_EQ(CleanPath("./string/../sysdeps/x.S"), "./sysdeps/x.S");
  EXPECT_EQ(CleanPath("../up/x.c"), "../up/x.c");
  EXPECT_EQ(CleanPath("a/../../x.c"), "../x.c");
  EXPECT_EQ(CleanPath("/../x.c"), "/x.c");
  EXPECT_EQ(CleanPath("./../x.c"), "./../x.c");
  EXPECT_EQ(CleanPath("x.c"), "x.c");
  EXPECT_EQ(CleanPath("/a/.hidden/..x/y"), "/a/.hidden/..x/y");
}

TEST(SysrootTest, FollowsLinksInsideIt) {
  const TempDir root;
  fs::create_directories(root / "usr/lib");
  fs::create_symlink("/usr/lib", root / "lib");           // absolute: inside the sysroot
  fs::create_symlink("../../../../usr", root / "usr/up");  // ".." stops at the sysroot
  fs::create_symlink("real.so.1", root / "usr/lib/x.so");
  fs::create_symlink("loop", root / "loop");
  EXPECT_EQ(ResolveInSysroot(root.path(), "/lib/x.so"), root / "usr/lib/real.so.1");
  EXPECT_EQ(ResolveInSysroot(root.path() + "/", "/usr/up/lib/x.so"),
            root / "usr/lib/real.so.1");
  EXPECT_EQ(ResolveInSysroot(root.path(), "/../../etc/passwd"), root / "etc/passwd");
  EXPECT_EQ(ResolveInSysroot(root.path(), "/loop/x"), root / "loop/x");
  EXPECT_EQ(ResolveInSysroot("", "/lib/x.so"), "/lib/x.so");
}

TEST(DemangleTest, KnowsWhatIsMangled) {
  EXPECT_EQ(Demangle("_ZN4shop8CheckoutEi"), "shop::Checkout(int)");
  EXPECT_EQ(Demangle("_ZN4core3fmt5Write9write_str17h0123456789abcdefE"), "core::fmt::Write::write_str");
  EXPECT_EQ(Demangle("_ZN52_$LT$T$u20$as$u20$alloc..slice..hack..ConvertVec$GT$6to_vec17h0123456789abcdefE"),
            "<T as alloc::slice::hack::ConvertVec>::to_vec");
  EXPECT_EQ(Demangle("_RNvMs_NtCslNYArtu3iFV_5alloc6stringNtB4_6String4push"), "<alloc::string::String>::push");
  EXPECT_EQ(Demangle("_Rgarbage"), "_Rgarbage");
  // LLVM's suffix of functions that it made known to other units.
  EXPECT_EQ(Demangle("_ZN4core3fmt5Write9write_str17h0123456789abcdefE.llvm.1234567890"),
            "core::fmt::Write::write_str");
  EXPECT_EQ(Demangle("_RNvMs_NtCslNYArtu3iFV_5alloc6stringNtB4_6String4push.llvm.12"), "<alloc::string::String>::push");
  EXPECT_EQ(Demangle("_ZN4shop8CheckoutEi.llvm.12"), "shop::Checkout(int) [clone .llvm.12]");
  EXPECT_TRUE(IsRust("_ZN3two4main17h0123456789abcdefE.llvm.1"));
  EXPECT_EQ(Demangle("_ZN5alloc7raw_vec11finish_grow17h0123456789abcdefE.5692"),
            "alloc::raw_vec::finish_grow");
  EXPECT_EQ(Demangle("_ZN1E1S17h0123456789abcdefE.specialized.1"), "E::S");
  EXPECT_EQ(Demangle("_ZN20_$LT$E..F$GT$$u20$as6to_vec17h0123456789abcdefE.7"),
            Demangle("_ZN20_$LT$E..F$GT$$u20$as6to_vec17h0123456789abcdefE"));
  EXPECT_FALSE(IsRust("_ZN3two4mainEv.llvm.1"));
  EXPECT_TRUE(IsRust("_RNvC3two4main") && IsRust("_ZN3two4main17h0123456789abcdefE"));
  EXPECT_FALSE(IsRust("_ZN3two4mainEv") || IsRust("_ZN3two4main17h0123456789abcdegE") || IsRust("two"));
  EXPECT_EQ(Demangle("malloc"), "malloc");
  EXPECT_EQ(Demangle("i"), "i");  // a type, to __cxa_demangle
  EXPECT_EQ(Demangle("_Zgarbage"), "_Zgarbage");
  EXPECT_EQ(Demangle(""), "");
}

TEST(CutNameTest, CutsBetweenTwoCharacters) {
  for (const std::string character : {"f", "\u00e9", "\u20ac", "\U0001f600"}) {
    for (size_t before = 0; before < 4; ++before) {
      SCOPED_TRACE(testing::Message() << before << " before " << character);
      std::string name(before, 'a');
      while (name.size() <= kMaxNameBytes) name += character;
      const std::string whole = name;
      CutName(&name);
      ASSERT_TRUE(name.ends_with("..."));
      const size_t kept = name.size() - 3;
      EXPECT_TRUE(whole.starts_with(name.substr(0, kept)));
      EXPECT_EQ((kept - before) % character.size(), 0u);
      EXPECT_LE(name.size(), kMaxNameBytes);
      EXPECT_GT(name.size() + character.size(), kMaxNameBytes) << "as much as there is room for";
    }
  }
  std::string no_utf8(kMaxNameBytes + 1, '\x80');
  CutName(&no_utf8);
  EXPECT_EQ(no_utf8.size(), kMaxNameBytes - 3) << "some of it is better than nothing";
}

TEST(DemangleTest, ReadsTheNamesOfD) {
  EXPECT_EQ(Demangle("_D4main4Pool4grabMFiZPv"), "main.Pool.grab(int)");
  EXPECT_EQ(Demangle("_D4main__T4leakTiZQiFiZPv"), "main.leak!(int).leak(int)");
  EXPECT_EQ(Demangle("_Dmain"), "D main");
  EXPECT_EQ(Demangle("_D9nothing"), "_D9nothing");
  EXPECT_EQ(Demangle("_DYNAMIC"), "_DYNAMIC");
  EXPECT_TRUE(IsMangled("_D4main4Pool4grabMFiZPv"));
  EXPECT_FALSE(IsMangled("_DYNAMIC") || IsMangled("_D"));
}

TEST(DemangleTest, IsBounded) {
  const std::string endless = "_Z" + std::string(100000, 'P') + "i";
  EXPECT_EQ(Demangle(endless), endless);
  // Every substitution doubles the text: 2^k pairs from 8 k characters.
  std::string doubling = "_Z1fSt4pairIiiE";
  for (int i = 0; i < 12; ++i) {
    const std::string last = i == 0 ? "S0_" : std::string("S") + static_cast<char>('0' + i) + "_";
    doubling += "St4pairI" + last + last + "E";
  }
  EXPECT_LE(Demangle(doubling).size(), kMaxNameBytes);
  // The same in Rust, a::f::<(i32, i32), (the pair before, the pair before), ...>; B and a number is what
  // began there.
  constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string pairs = "_RINvC1a1fTllE";
  size_t last = 8;
  for (int i = 0; i < 6; ++i) {
    const size_t begin = pairs.size() - 2;
    const std::string before = std::string("B") + kDigits[last - 1] + "_";
    pairs += "T" + before + before + "E";
    last = begin;
  }
  EXPECT_GT(Demangle(pairs + "E").size(), 1000u);
  while (pairs.size() < 2000) pairs += "TB" + std::string(1, kDigits[last - 1]) + "_B" + kDigits[last - 1] + "_E";
  pairs += "E";
  EXPECT_LE(Demangle(pairs).size(), kMaxNameBytes);
}

TEST(ByteCursorTest, StopsAtTheEnd) {
  ByteCursor cursor(std::string_view("\x81\x01\xff", 3));
  EXPECT_EQ(cursor.Leb(), 129u);
  EXPECT_EQ(cursor.position(), 2u);
  EXPECT_EQ(cursor.Leb(), 0u);  // unfinished
  EXPECT_FALSE(cursor.ok());
  EXPECT_TRUE(cursor.AtEnd());
  EXPECT_EQ(cursor.Fixed(4), 0u);
  cursor.SkipString();
  cursor.Skip(1);
  EXPECT_FALSE(cursor.ok());
}

// DW_FORM_LLVM_addrx_offset: an index of 129, and four bytes.
TEST(AbbreviationsTest, StepOverAnAddressByIndexAndOffset) {
  const UnitShape shape = {5, 8, 4};
  Abbreviation::Op op;
  ASSERT_TRUE(StepOfForm(0x2001, shape, &op));
  ByteCursor cursor(std::string_view("\x81\x01\x10\x00\x00\x00\x07", 7));
  EXPECT_TRUE(TakeStep(op, shape, &cursor));
  EXPECT_EQ(cursor.Fixed(1), 7u);
}

TEST(ByteCursorTest, ReadsSignedNumbers) {
  EXPECT_EQ(ByteCursor(std::string_view("\x7f", 1)).SignedLeb(), -1);
  EXPECT_EQ(ByteCursor(std::string_view("\x80\x7f", 2)).SignedLeb(), -128);
  EXPECT_EQ(ByteCursor(std::string_view("\xff\x00", 2)).SignedLeb(), 127);
}

}  // namespace
}  // namespace memtrace::symbolizer
