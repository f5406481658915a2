// Every row of every FDE of large files: our rules against libdw's.
//
// The FDEs are enumerated by libdw from the raw section, so that one which our
// search cannot find is a difference too. Each row is compared at its first and its
// last pc: its range, the CFA, the return address and all sixteen registers, in the
// form libdw gives them (lists of operations). Where a row packs into a FrameRule the
// rule is expanded again and compared as well. Nothing of these files is executed.

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "preload/unwind/cfi_reader.h"
#include "preload/unwind/frame_rule.h"

namespace memtrace::unwind {
namespace {

// An operation without its place, for comparing.
struct Op {
  uint8_t atom;
  uint64_t number = 0;
  uint64_t number2 = 0;
  bool operator==(const Op&) const = default;
};
struct Ops {
  enum Kind { kUndefined, kSame, kList } kind = kUndefined;
  std::vector<Op> list;
  bool operator==(const Ops&) const = default;

  std::string Text() const {
    if (kind != kList) return kind == kSame ? "same" : "undefined";
    std::string text;
    for (const Op& op : list) {
      char buffer[80];
      snprintf(buffer, sizeof(buffer), "%02x(%ld,%ld) ", op.atom, static_cast<long>(op.number),
               static_cast<long>(op.number2));
      text += buffer;
    }
    return text;
  }
};

Ops FromDw(const Dwarf_Op* ops, size_t count) {
  Ops result{Ops::kList, {}};
  for (size_t i = 0; i < count; ++i) {
    result.list.push_back({ops[i].atom, ops[i].number, ops[i].number2});
  }
  return result;
}

// Our expression bytes as operations; only what compilers put into CFI.
bool Decode(ByteReader reader, std::vector<Op>* list) {
  while (!reader.at_end()) {
    Op op{reader.Byte()};
    if (op.atom >= DW_OP_breg0 && op.atom <= DW_OP_breg31) {
      op.number = static_cast<uint64_t>(reader.Sleb());
    } else if (op.atom == DW_OP_plus_uconst || op.atom == DW_OP_constu) {
      op.number = reader.Uleb();
    } else if (op.atom == DW_OP_consts) {
      op.number = static_cast<uint64_t>(reader.Sleb());
    } else if (op.atom == DW_OP_const1u) {
      op.number = reader.Byte();
    } else if (op.atom == DW_OP_const1s) {
      op.number = static_cast<uint64_t>(int64_t{reader.Fixed<int8_t>()});
    } else if (op.atom == DW_OP_bregx) {
      op.number = reader.Uleb();
      op.number2 = static_cast<uint64_t>(reader.Sleb());
    } else if (op.atom != DW_OP_deref && !(op.atom >= DW_OP_dup && op.atom <= DW_OP_plus) &&
               !(op.atom >= DW_OP_shl && op.atom <= DW_OP_xor) &&
               !(op.atom >= DW_OP_eq && op.atom <= DW_OP_ne) &&
               !(op.atom >= DW_OP_lit0 && op.atom <= DW_OP_lit31)) {
      return false;
    }
    list->push_back(op);
  }
  return reader.ok();
}

Ops CfaOps(const CfiImage& image, const CfaRule& cfa) {
  Ops ops{Ops::kList, {}};
  if (!cfa.is_expression) {
    ops.list = {{DW_OP_bregx, cfa.reg, static_cast<uint64_t>(cfa.value)}};
  } else if (!Decode(ExpressionBytes(image, cfa.value), &ops.list)) {
    ops.list = {{0}};
  }
  return ops;
}

Ops CfaRelative(int64_t offset, bool is_value) {
  Ops ops{Ops::kList, {{DW_OP_call_frame_cfa}}};
  if (offset != 0) ops.list.push_back({DW_OP_plus_uconst, static_cast<uint64_t>(offset)});
  if (is_value) ops.list.push_back({DW_OP_stack_value});
  return ops;
}

// The ABI's answer, which libdw has built in, where CFI says nothing. It is about
// libdw, not about the file: its table has the number 0, rax, where rbx (3) is meant.
Ops Unspecified(int reg) {
  if (reg == 0 || reg == kRbp || (reg >= kR12 && reg <= kR15)) return {Ops::kSame, {}};
  if (reg == kRsp) return CfaRelative(0, true);
  return {};
}

Ops RegisterOps(const CfiImage& image, int reg, const CfiRule& rule) {
  switch (rule.kind) {
    case RuleKind::kUnspecified:
      return Unspecified(reg);
    case RuleKind::kUndefined:
      return {};
    case RuleKind::kSame:
      return {Ops::kSame, {}};
    case RuleKind::kOffset:
      return CfaRelative(rule.value, false);
    case RuleKind::kValOffset:
      return CfaRelative(rule.value, true);
    case RuleKind::kRegister:
      return {Ops::kList, {{DW_OP_regx, static_cast<uint64_t>(rule.value)}}};
    case RuleKind::kExpression:
    case RuleKind::kValExpression: {
      Ops ops{Ops::kList, {{DW_OP_call_frame_cfa}}};
      if (!Decode(ExpressionBytes(image, rule.value), &ops.list)) ops.list = {{0}};
      if (rule.kind == RuleKind::kValExpression) ops.list.push_back({DW_OP_stack_value});
      return ops;
    }
  }
  return {};
}

// What a packed rule says of the CFA, rbp and rip.
void Expand(FrameRule rule, Ops* cfa, Ops* rbp, Ops* rip) {
  const auto breg = [](int reg, int64_t offset) {
    return Op{static_cast<uint8_t>(DW_OP_breg0 + reg), static_cast<uint64_t>(offset)};
  };
  *rbp = {Ops::kSame, {}};
  *rip = CfaRelative(-8, false);
  *cfa = {Ops::kList, {}};
  if (rule.flags & kSignal) {
    cfa->list = {breg(kRsp, kUcontextOffset[kRsp]), {DW_OP_deref}};
    *rbp = {Ops::kList, {{DW_OP_call_frame_cfa}, breg(kRsp, kUcontextOffset[kRbp])}};
    *rip = {Ops::kList, {{DW_OP_call_frame_cfa}, breg(kRsp, kUcontextOffset[kRip])}};
    return;
  }
  const int base = rule.flags & kCfaFromRbp ? kRbp : kRsp;
  if (rule.flags & kCfaLoaded) {
    cfa->list = {breg(base, rule.cfa_offset), {DW_OP_deref}};
    if (rule.flags & kCfaPlus8) cfa->list.push_back({DW_OP_plus_uconst, 8});
  } else {
    cfa->list = {{DW_OP_bregx, static_cast<uint64_t>(base),
                  static_cast<uint64_t>(int64_t{rule.cfa_offset})}};
  }
  if (rule.flags & kRbpFromRbp) {
    *rbp = {Ops::kList, {{DW_OP_call_frame_cfa}, breg(kRbp, rule.rbp_words * 8)}};
  } else if (rule.flags & kRbpSaved) {
    *rbp = CfaRelative(rule.rbp_words * 8, false);
  }
}

class File {
 public:
  explicit File(const std::string& path) {
    fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (fd_ < 0 || fstat(fd_, &status) != 0) return;
    size_ = static_cast<size_t>(status.st_size);
    data_ = static_cast<uint8_t*>(mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd_, 0));
    elf_version(EV_CURRENT);
    elf_ = elf_begin(fd_, ELF_C_READ_MMAP, nullptr);
    GElf_Phdr hdr = {};
    size_t count = 0;
    elf_getphdrnum(elf_, &count);
    for (size_t i = 0; i < count; ++i) {
      GElf_Phdr phdr;
      gelf_getphdr(elf_, static_cast<int>(i), &phdr);
      if (phdr.p_type == PT_GNU_EH_FRAME) hdr = phdr;
    }
    for (size_t i = 0; i < count; ++i) {
      GElf_Phdr phdr;
      gelf_getphdr(elf_, static_cast<int>(i), &phdr);
      if (phdr.p_type == PT_LOAD && hdr.p_vaddr - phdr.p_vaddr < phdr.p_filesz) {
        image_ = {data_ + phdr.p_offset, phdr.p_vaddr, phdr.p_filesz, hdr.p_vaddr};
      }
    }
    cfi_ = dwarf_getcfi_elf(elf_);
  }
  ~File() {
    if (cfi_ != nullptr) dwarf_cfi_end(cfi_);
    if (elf_ != nullptr) elf_end(elf_);
    if (data_ != nullptr) munmap(data_, size_);
    if (fd_ >= 0) close(fd_);
  }
  bool ok() const { return cfi_ != nullptr && image_.size != 0; }
  const CfiImage& image() const { return image_; }
  Dwarf_CFI* cfi() const { return cfi_; }

  // The start of every FDE, read from the section without the search table.
  std::vector<uintptr_t> FdeStarts() const {
    std::vector<uintptr_t> starts;
    size_t names;
    elf_getshdrstrndx(elf_, &names);
    Elf_Scn* section = nullptr;
    GElf_Shdr header = {};
    while ((section = elf_nextscn(elf_, section)) != nullptr) {
      gelf_getshdr(section, &header);
      if (std::string(elf_strptr(elf_, names, header.sh_name)) == ".eh_frame") break;
    }
    Elf_Data* data = elf_getdata(section, nullptr);
    const auto* ident = reinterpret_cast<const unsigned char*>(elf_getident(elf_, nullptr));
    Dwarf_Off next = 0;
    Dwarf_CFI_Entry entry;
    std::map<Dwarf_Off, uint8_t> encodings;  // by offset of the CIE
    for (Dwarf_Off at = 0;; at = next) {
      const int status = dwarf_next_cfi(ident, data, true, at, &next, &entry);
      if (status != 0) {
        EXPECT_EQ(status, 1) << "at " << at;
        break;
      }
      if (dwarf_cfi_cie_p(&entry)) {
        encodings[at] = Encoding(entry.cie);
        continue;
      }
      EXPECT_EQ(encodings[entry.fde.CIE_pointer], 0x1b) << "the test knows pcrel sdata4 only";
      int32_t distance;
      memcpy(&distance, entry.fde.start, sizeof(distance));
      const auto offset = entry.fde.start - static_cast<const uint8_t*>(data->d_buf);
      starts.push_back(header.sh_addr + static_cast<uintptr_t>(offset + distance));
    }
    return starts;
  }

 private:
  static uint8_t Encoding(const Dwarf_CIE& cie) {
    const uint8_t* data = cie.augmentation_data;
    for (const char* letter = cie.augmentation; *letter != 0; ++letter) {
      if (*letter == 'R') return *data;
      if (*letter == 'L') ++data;
      if (*letter == 'P') data += (*data & 7) == DW_EH_PE_udata8 || (*data & 7) == 0 ? 9 : 5;
    }
    return 0;
  }

  int fd_ = -1;
  size_t size_ = 0;
  uint8_t* data_ = nullptr;
  Elf* elf_ = nullptr;
  Dwarf_CFI* cfi_ = nullptr;
  CfiImage image_;
};

class RuleRowsTest : public testing::TestWithParam<std::string> {
 protected:
  // Compares at one pc of the row that begins at `start`. Returns the end of libdw's
  // row, or 0 when it has none.
  uintptr_t CompareAt(const File& file, uintptr_t start, uintptr_t pc);
  void CompareRow(const File& file, uintptr_t start, uintptr_t pc, const CfiRow& row,
                  Dwarf_Frame* frame);
  void Differ(uintptr_t pc, const char* what, const Ops& ours, const Ops& theirs) {
    if (++differences_ <= 20) {
      ADD_FAILURE() << std::hex << pc << " " << what << ": ours " << ours.Text() << " theirs "
                    << theirs.Text();
    }
  }
  void Expect(uintptr_t pc, const char* what, const Ops& ours, const Ops& theirs) {
    if (!(ours == theirs)) Differ(pc, what, ours, theirs);
  }

  size_t differences_ = 0;
  size_t compared_ = 0;
  size_t generic_ = 0;
};

uintptr_t RuleRowsTest::CompareAt(const File& file, uintptr_t start, uintptr_t pc) {
  Dwarf_Frame* frame = nullptr;
  CfiRow row;
  const int theirs = dwarf_cfi_addrframe(file.cfi(), pc, &frame);
  const CfiStatus ours = FindRow(file.image(), pc, &row);
  if (theirs != 0 || ours != CfiStatus::kOk) {
    if ((theirs == 0) != (ours == CfiStatus::kOk)) {
      Differ(pc, "found by one only",
             Ops{ours == CfiStatus::kOk ? Ops::kSame : Ops::kUndefined, {}},
             Ops{theirs == 0 ? Ops::kSame : Ops::kUndefined, {}});
    }
    free(frame);
    return 0;
  }
  ++compared_;
  Dwarf_Addr end;
  dwarf_frame_info(frame, nullptr, &end, nullptr);
  CompareRow(file, start, pc, row, frame);
  free(frame);
  return end;
}

void RuleRowsTest::CompareRow(const File& file, uintptr_t start, uintptr_t pc, const CfiRow& row,
                              Dwarf_Frame* frame) {
  Dwarf_Addr end;
  bool signal;
  // libdw's start of a row is not asked: DW_CFA_restore_state brings back that of the
  // remembered row. A row begins where the one before it ends.
  const int ra = dwarf_frame_info(frame, nullptr, &end, &signal);
  const auto number = [](uint64_t value) { return Ops{Ops::kList, {{0, value}}}; };
  Expect(pc, "start", number(row.start), number(start));
  Expect(pc, "end", number(row.end), number(end));
  Expect(pc, "signal", number(row.signal_frame), number(signal));
  Expect(pc, "ra", number(row.ra_register), number(static_cast<uint64_t>(ra)));

  Dwarf_Op* ops;
  size_t count;
  if (dwarf_frame_cfa(frame, &ops, &count) != 0) count = 0;
  const Ops cfa = FromDw(ops, count);
  Expect(pc, "cfa", CfaOps(file.image(), row.cfa), cfa);
  Ops registers[kRegisterCount];
  for (int reg = 0; reg < kRegisterCount; ++reg) {
    Dwarf_Op memory[3];
    ASSERT_EQ(dwarf_frame_register(frame, reg, memory, &ops, &count), 0);
    registers[reg] = count != 0 ? FromDw(ops, count) : ops == nullptr ? Ops{Ops::kSame, {}} : Ops{};
    char name[16];
    snprintf(name, sizeof(name), "r%d", reg);
    Expect(pc, name, RegisterOps(file.image(), reg, row.registers[reg]), registers[reg]);
  }

  const FrameRule rule = PackRow(file.image(), row);
  if (rule.flags & kGeneric) {
    ++generic_;
  } else if (rule.flags & kEnd) {
    Expect(pc, "packed end", Ops{}, registers[kRip]);
  } else {
    Ops packed_cfa, rbp, rip;
    Expand(FrameRule::Unpacked(rule.Packed()), &packed_cfa, &rbp, &rip);
    Expect(pc, "packed cfa", packed_cfa, cfa);
    Expect(pc, "packed rbp", rbp, registers[kRbp]);
    Expect(pc, "packed rip", rip, registers[kRip]);
  }
}

TEST_P(RuleRowsTest, EqualsLibdwInEveryRow) {
  const File file(GetParam());
  ASSERT_TRUE(file.ok()) << GetParam();
  const std::vector<uintptr_t> starts = file.FdeStarts();
  ASSERT_GT(starts.size(), 200u);
  size_t rows = 0;
  for (const uintptr_t start : starts) {
    uintptr_t pc = start;
    while (true) {
      const uintptr_t end = CompareAt(file, pc, pc);
      if (end == 0 || end <= pc) break;
      ++rows;
      CompareAt(file, pc, end - 1);
      Dwarf_Frame* next = nullptr;
      if (dwarf_cfi_addrframe(file.cfi(), end, &next) != 0) {
        CompareAt(file, end, end);  // behind the FDE: neither may find one
        break;
      }
      free(next);
      pc = end;
      // The row behind may belong to the next FDE, which has its own turn.
      CfiRow row;
      if (FindRow(file.image(), pc, &row) == CfiStatus::kOk && row.fde_start != start) break;
    }
  }
  EXPECT_EQ(differences_, 0u);
  EXPECT_GT(rows, starts.size());
  printf("%s: %zu FDEs, %zu rows, %zu comparisons, %zu of them generic\n", GetParam().c_str(),
         starts.size(), rows, compared_, generic_);
}

std::string Output(const char* command) {
  std::string text;
  FILE* pipe = popen(command, "r");
  for (int c; pipe != nullptr && (c = fgetc(pipe)) != EOF && c != '\n';)
    text += static_cast<char>(c);
  if (pipe != nullptr) pclose(pipe);
  return text;
}

// Every file must be there: a missing one is a failure, not a skipped comparison.
INSTANTIATE_TEST_SUITE_P(Files, RuleRowsTest,
                         testing::Values("/lib/x86_64-linux-gnu/libc.so.6",
                                         "/lib64/ld-linux-x86-64.so.2",
                                         "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
                                         "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
                                         "/usr/bin/python3.11",
                                         Output("g++ -print-prog-name=cc1plus")),
                         [](const auto& info) {
                           std::string name = info.param.substr(info.param.rfind('/') + 1);
                           for (char& c : name)
                             c = isalnum(static_cast<unsigned char>(c)) ? c : '0';
                           return name;
                         });

}  // namespace
}  // namespace memtrace::unwind
