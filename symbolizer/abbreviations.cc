// Abbreviations: reading .debug_abbrev. See abbreviations.h.

#include "symbolizer/abbreviations.h"

#include <dwarf.h>

#include <utility>

namespace memtrace::symbolizer {
namespace {

using Op = Abbreviation::Op;
using Step = Abbreviation::Step;

// clang's since LLVM 13, which no header of ours has yet: an index of .debug_addr and an offset
// of four bytes.
constexpr uint64_t kFormLlvmAddrxOffset = 0x2001;

// Codes up to here live in a vector, so that a lookup is one index.
constexpr uint64_t kMaxDenseCode = 1 << 16;

}  // namespace

bool StepOfForm(uint64_t form, const UnitShape& shape, Op* op) {
  auto skip = [op](uint32_t bytes) {
    *op = {Step::kSkip, bytes};
    return true;
  };
  auto other = [op](Step step) {
    *op = {step, 0};
    return true;
  };
  switch (form) {
    case DW_FORM_flag_present:
    case DW_FORM_implicit_const:
      return skip(0);
    case DW_FORM_data1:
    case DW_FORM_ref1:
    case DW_FORM_flag:
    case DW_FORM_strx1:
    case DW_FORM_addrx1:
      return skip(1);
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2:
      return skip(2);
    case DW_FORM_strx3:
    case DW_FORM_addrx3:
      return skip(3);
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
    case DW_FORM_ref_sup4:
      return skip(4);
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sig8:
    case DW_FORM_ref_sup8:
      return skip(8);
    case DW_FORM_data16:
      return skip(16);
    case DW_FORM_addr:
      return skip(shape.address_bytes);
    case DW_FORM_ref_addr:  // an address in DWARF 2, an offset since
      return skip(shape.version <= 2 ? shape.address_bytes : shape.offset_bytes);
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_strp_sup:
    case DW_FORM_sec_offset:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_GNU_strp_alt:
      return skip(shape.offset_bytes);
    case DW_FORM_sdata:
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index:
      return other(Step::kLeb);
    case kFormLlvmAddrxOffset:
      *op = {Step::kLeb, 4};
      return true;
    case DW_FORM_string:
      return other(Step::kString);
    case DW_FORM_block1:
      return other(Step::kBlock1);
    case DW_FORM_block2:
      return other(Step::kBlock2);
    case DW_FORM_block4:
      return other(Step::kBlock4);
    case DW_FORM_block:
    case DW_FORM_exprloc:
      return other(Step::kBlockLeb);
    case DW_FORM_indirect:
      return other(Step::kIndirect);
    default:
      return false;
  }
}

bool TakeStep(const Op& op, const UnitShape& shape, ByteCursor* cursor) {
  switch (op.step) {
    case Step::kSkip:
      cursor->Skip(op.bytes);
      break;
    case Step::kLeb:
      cursor->SkipLeb();
      cursor->Skip(op.bytes);
      break;
    case Step::kString:
      cursor->SkipString();
      break;
    case Step::kBlock1:
      cursor->Skip(cursor->Fixed(1));
      break;
    case Step::kBlock2:
      cursor->Skip(cursor->Fixed(2));
      break;
    case Step::kBlock4:
      cursor->Skip(cursor->Fixed(4));
      break;
    case Step::kBlockLeb:
      cursor->Skip(cursor->Leb());
      break;
    case Step::kIndirect: {  // the form is in the DIE; indirect again is not allowed
      Op inner;
      if (!StepOfForm(cursor->Leb(), shape, &inner) || inner.step == Step::kIndirect) return false;
      return TakeStep(inner, shape, cursor);
    }
  }
  return cursor->ok();
}

bool Abbreviations::Read(std::string_view table, const UnitShape& shape) {
  dense_.clear();
  sparse_.clear();
  ByteCursor cursor(table);
  for (;;) {
    const uint64_t code = cursor.Leb();
    if (!cursor.ok()) return false;
    if (code == 0) return true;
    Abbreviation abbreviation;
    abbreviation.tag = static_cast<uint16_t>(cursor.Leb());
    abbreviation.has_children = cursor.Fixed(1) != 0;
    abbreviation.is_function = abbreviation.tag == DW_TAG_subprogram ||
                               abbreviation.tag == DW_TAG_inlined_subroutine;
    for (;;) {
      const uint64_t name = cursor.Leb();
      const uint64_t form = cursor.Leb();
      const int64_t constant = form == DW_FORM_implicit_const ? cursor.SignedLeb() : 0;
      if (!cursor.ok()) return false;
      if (name == 0 && form == 0) break;
      Op op;
      if (!StepOfForm(form, shape, &op)) return false;
      if (abbreviation.is_function) {
        abbreviation.attributes.push_back(
            {static_cast<uint16_t>(name), static_cast<uint16_t>(form), constant});
      }
      std::vector<Op>& ops = abbreviation.ops;
      if (op.step == Step::kSkip && !ops.empty() && ops.back().step == Step::kSkip) {
        ops.back().bytes += op.bytes;
      } else if (op.step != Step::kSkip || op.bytes != 0) {
        ops.push_back(op);
      }
    }
    if (code == dense_.size() + 1 && code <= kMaxDenseCode) {
      dense_.push_back(std::move(abbreviation));
    } else {
      sparse_.emplace(code, std::move(abbreviation));
    }
  }
}

const Abbreviation* Abbreviations::Find(uint64_t code) const {
  if (code - 1 < dense_.size()) return &dense_[code - 1];
  const auto it = sparse_.find(code);
  return it == sparse_.end() ? nullptr : &it->second;
}

}  // namespace memtrace::symbolizer
