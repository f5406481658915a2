// EnclosingScopes. See enclosing_scopes.h.

#include "symbolizer/enclosing_scopes.h"

#include <dwarf.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "symbolizer/demangle.h"
#include "symbolizer/dwarf_attributes.h"

namespace memtrace::symbolizer {
namespace {

// Deeper than programs nest; bounds the work on damaged files.
constexpr int kMostScopes = 64;
constexpr int kMostLinks = 16;
constexpr size_t kMostChildren = 4'000'000;
constexpr size_t kMostParameters = 256;

bool IsCPlusPlus(Dwarf_Die* die) {
  Dwarf_Die unit;
  if (dwarf_diecu(die, &unit, nullptr, nullptr) == nullptr) return false;
  switch (dwarf_srclang(&unit)) {
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
    case 0x2b:  // DW_LANG_C_plus_plus_17
    case 0x2c:  // DW_LANG_C_plus_plus_20
      return true;
    default:
      return false;
  }
}

// The DIE behind all of them: the one that stands in its scope.
Dwarf_Die Declared(Dwarf_Die die) {
  for (int i = 0; i < kMostLinks && FollowOrigin(&die); ++i) {
  }
  return die;
}

// The one that leads there, a function's abstract instance; itself where there is no other.
Dwarf_Die BeforeDeclared(Dwarf_Die die) {
  Dwarf_Die next = die;
  for (int i = 0; i < kMostLinks && FollowOrigin(&next); ++i) {
    Dwarf_Die behind = next;
    if (!FollowOrigin(&behind)) break;
    die = next;
  }
  return die;
}

// The DIE of a type that has its name and stands in its scope. A type that has a unit of its own
// (-fdebug-types-section) has it there; elsewhere is a stub with its signature.
Dwarf_Die DeclaredType(Dwarf_Die type) {
  Dwarf_Attribute attribute;
  Dwarf_Die whole;
  const bool is_stub = dwarf_attr(&type, DW_AT_signature, &attribute) != nullptr &&
                       dwarf_formref_die(&attribute, &whole) != nullptr;
  return Declared(is_stub ? whole : type);
}

const char* NameOf(Dwarf_Die* die) {
  const char* name = dwarf_diename(die);
  return name != nullptr && *name != '\0' ? name : nullptr;
}

bool HasFlag(Dwarf_Die* die, unsigned name) {
  Dwarf_Attribute attribute;
  bool value = false;
  return dwarf_attr_integrate(die, name, &attribute) != nullptr &&
         dwarf_formflag(&attribute, &value) == 0 && value;
}

}  // namespace

const std::vector<Dwarf_Die>& EnclosingScopes::Children(Dwarf_Die* die) {
  const auto [it, is_new] = children_.try_emplace(die->addr);
  if (is_new) {
    Dwarf_Die child;
    if (dwarf_child(die, &child) == 0) {
      do {
        it->second.push_back(child);
      } while (it->second.size() < kMostChildren && dwarf_siblingof(&child, &child) == 0);
    }
  }
  return it->second;
}

std::string EnclosingScopes::Prefix(Dwarf_Die* die) {
  Dwarf_Die scope;
  if (dwarf_diecu(die, &scope, nullptr, nullptr) == nullptr) return "";
  const Dwarf_Off wanted = dwarf_dieoffset(die);
  std::string prefix;
  for (int depth = 0; depth < kMostScopes; ++depth) {
    const std::vector<Dwarf_Die>& children = Children(&scope);
    // The last that does not begin behind it: DIEs are written in preorder.
    const auto behind = std::partition_point(
        children.begin(), children.end(),
        [&](Dwarf_Die child) { return dwarf_dieoffset(&child) <= wanted; });
    if (behind == children.begin()) return prefix;
    scope = *(behind - 1);
    if (dwarf_dieoffset(&scope) == wanted) return prefix;
    const int tag = dwarf_tag(&scope);
    const char* name = NameOf(&scope);
    switch (tag) {
      case DW_TAG_namespace:
        absl::StrAppend(&prefix, name != nullptr ? name : "(anonymous namespace)", "::");
        break;
      case DW_TAG_class_type:
      case DW_TAG_structure_type:
      case DW_TAG_union_type: {
        Dwarf_Die declared = DeclaredType(scope);
        name = NameOf(&declared);
        // GCC's of a lambda; its operator() is all that has a name.
        absl::StrAppend(&prefix, name != nullptr ? name : "{lambda}", "::");
        break;
      }
      case DW_TAG_subprogram: {
        // A function's own scopes are with its declaration, not around this DIE.
        Dwarf_Die declared = Declared(scope);
        Dwarf_Attribute linkage;
        const char* mangled =
            dwarf_attr_integrate(&scope, DW_AT_linkage_name, &linkage) != nullptr
                ? dwarf_formstring(&linkage) : nullptr;
        if (mangled != nullptr && IsMangled(mangled)) {
          prefix = absl::StrCat(Demangle(mangled), "::");
        } else if (const char* plain = NameOf(&declared); plain != nullptr) {
          if (declared.addr != scope.addr && depth + 1 < kMostScopes) {
            prefix = depth == 0 ? Prefix(&declared) : prefix;
          }
          absl::StrAppend(&prefix, plain, "::");
        }
        break;
      }
      default:
        break;
    }
  }
  return prefix;
}

std::string EnclosingScopes::TypeName(Dwarf_Die* die, int depth) {
  if (depth > kMostLinks) return "?";
  Dwarf_Die inner;
  const auto of_inner = [&](const char* behind) {
    return absl::StrCat(TypeOf(die, &inner) ? TypeName(&inner, depth + 1) : "void", behind);
  };
  switch (dwarf_tag(die)) {
    case DW_TAG_typedef: return of_inner("");
    case DW_TAG_pointer_type: return of_inner("*");
    case DW_TAG_reference_type: return of_inner("&");
    case DW_TAG_rvalue_reference_type: return of_inner("&&");
    case DW_TAG_const_type: return of_inner(" const");
    case DW_TAG_volatile_type: return of_inner(" volatile");
    case DW_TAG_array_type: return of_inner(" []");
    case DW_TAG_subroutine_type: return "void (...)";
    case DW_TAG_ptr_to_member_type: return "void (::*)";
    case DW_TAG_base_type:
    case DW_TAG_unspecified_type: {
      const char* name = NameOf(die);
      return name != nullptr ? name : "?";
    }
    default: {
      Dwarf_Die declared = DeclaredType(*die);
      const char* name = NameOf(&declared);
      return name != nullptr ? absl::StrCat(Prefix(&declared), name) : "{lambda}";
    }
  }
}

bool EnclosingScopes::HasParameters(Dwarf_Die* function) {
  return std::ranges::any_of(Children(function), [](Dwarf_Die child) {
    return dwarf_tag(&child) == DW_TAG_formal_parameter;
  });
}

std::string EnclosingScopes::Parameters(Dwarf_Die* function) {
  std::string text;
  size_t count = 0;
  for (const Dwarf_Die& child : Children(function)) {
    Dwarf_Die parameter = child;
    const int tag = dwarf_tag(&parameter);
    if (tag != DW_TAG_formal_parameter && tag != DW_TAG_unspecified_parameters) continue;
    if (HasFlag(&parameter, DW_AT_artificial)) continue;
    Dwarf_Die type;
    if (++count > kMostParameters) break;
    absl::StrAppend(&text, text.empty() ? "" : ", ",
                    tag == DW_TAG_unspecified_parameters ? "..."
                    : TypeOf(&parameter, &type)          ? TypeName(&type, 0)
                                                         : "?");
  }
  return absl::StrCat("(", text, ")");
}

bool EnclosingScopes::KnowsTypes(Dwarf_Die* die) {
  Dwarf_Die unit;
  if (dwarf_diecu(die, &unit, nullptr, nullptr) == nullptr) return false;
  const std::vector<Dwarf_Die>& children = Children(&unit);
  return std::any_of(children.begin(), children.end(), [](Dwarf_Die child) {
    switch (dwarf_tag(&child)) {
      case DW_TAG_base_type:
      case DW_TAG_pointer_type:
      case DW_TAG_class_type:
      case DW_TAG_structure_type:
      case DW_TAG_typedef:
        return true;
      default:
        return false;
    }
  });
}

const std::string& EnclosingScopes::QualifiedName(Dwarf_Die* function) {
  Dwarf_Die declared = Declared(*function);
  const auto [it, is_new] = names_.try_emplace(declared.addr);
  const char* name = NameOf(&declared);
  // The language is asked of the function's unit: a declaration that dwz moved to a unit of
  // its own has none there.
  if (!is_new || name == nullptr || !IsCPlusPlus(function)) return it->second;
  const std::string prefix = Prefix(&declared);
  // These have no qualified name: main, functions that the compiler made for itself, and
  // names that were declared nowhere, of which neither scope nor parameters are known
  // (clang -gline-tables-only).
  if (prefix.empty() &&
      (HasFlag(&declared, DW_AT_external) || HasFlag(&declared, DW_AT_artificial) ||
       !dwarf_hasattr(&declared, DW_AT_decl_line))) {
    return it->second;
  }
  // A declaration in the stub of a type has no parameters; the function that was
  // made of it has them.
  Dwarf_Die with_parameters = HasParameters(&declared) ? declared : BeforeDeclared(*function);
  const std::string parameters = Parameters(&with_parameters);
  // gcc -g1 says nothing of them.
  if (parameters == "()" && !KnowsTypes(&declared))
    return it->second = prefix.empty() ? "" : absl::StrCat(prefix, name);
  return it->second = absl::StrCat(prefix, name, parameters);
}

}  // namespace memtrace::symbolizer
