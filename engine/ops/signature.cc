#include "engine/ops/signature.h"

#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "kernels/error.h"

namespace gradwire {
namespace {

std::string_view trim(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

// Splits at commas outside brackets and quotes.
std::vector<std::string> split_params(std::string_view s) {
  std::vector<std::string> parts;
  int depth = 0;
  bool quoted = false;
  std::string now;
  for (char c : s) {
    if (c == '\'') quoted = !quoted;
    if (!quoted && (c == '[' || c == '(')) ++depth;
    if (!quoted && (c == ']' || c == ')')) --depth;
    if (c == ',' && depth == 0 && !quoted) {
      parts.emplace_back(trim(now));
      now.clear();
    } else {
      now += c;
    }
  }
  if (!trim(now).empty()) parts.emplace_back(trim(now));
  return parts;
}

bool parse_type(std::string_view text, Param* param) {
  param->type_text = std::string(text);
  if (!text.empty() && text.back() == '?') {
    param->optional = true;
    text.remove_suffix(1);
  }
  if (text == "Tensor?[]") {
    param->optional = true;
    text = "Tensor[]";
  }
  struct Entry {
    std::string_view name;
    ParamType type;
  };
  static constexpr Entry kTypes[] = {
      {"Tensor", ParamType::kTensor},   {"Tensor[]", ParamType::kTensorList},
      {"Operand", ParamType::kOperand}, {"Scalar", ParamType::kScalar},
      {"int", ParamType::kInt},         {"float", ParamType::kFloat},
      {"bool", ParamType::kBool},       {"str", ParamType::kString},
      {"dtype", ParamType::kDType},     {"device", ParamType::kDevice},
      {"bytes", ParamType::kBytes},     {"int[]", ParamType::kInts},
      {"float[]", ParamType::kFloats},  {"Object", ParamType::kObject}};
  for (const Entry& entry : kTypes) {
    if (entry.name == text) {
      param->type = entry.type;
      return true;
    }
  }
  return false;
}

bool parse_default(std::string_view text, Param* param) {
  param->has_default = true;
  param->default_text = std::string(text);
  std::string s(text);
  if (s == "None") {
    param->optional = true;
    return true;
  }
  if (s == "True" || s == "False") {
    param->default_value = Attribute(s == "True");
    return true;
  }
  if (s.size() >= 2 && s.front() == '\'') {
    param->default_value = Attribute(s.substr(1, s.size() - 2));
    return true;
  }
  if (s.front() == '[') {
    if (param->type == ParamType::kTensorList) return s == "[]";
    IntList ints;
    FloatList floats;
    for (auto part : absl::StrSplit(s.substr(1, s.size() - 2), ',', absl::SkipWhitespace())) {
      double f = 0;
      if (!absl::SimpleAtod(part, &f)) return false;
      floats.push_back(f);
      ints.push_back(static_cast<int64_t>(f));
    }
    param->default_value = param->type == ParamType::kFloats ? Attribute(std::move(floats))
                                                             : Attribute(std::move(ints));
    return true;
  }
  int64_t i = 0;
  double f = 0;
  if (absl::SimpleAtoi(s, &i) && param->type != ParamType::kFloat) {
    param->default_value = Attribute(i);
    return true;
  }
  if (absl::SimpleAtod(s, &f)) {
    param->default_value = Attribute(f);
    return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<Signature> Signature::parse(std::string_view text) {
  Signature out;
  out.text = std::string(text);
  auto bad = [&](std::string_view what) {
    return internal_error("signature '", out.text, "': ", std::string(what));
  };
  size_t open = text.find('(');
  size_t arrow = text.rfind(") -> ");
  if (open == std::string_view::npos || arrow == std::string_view::npos) {
    return bad("expected name(params) -> returns");
  }
  out.name = std::string(trim(text.substr(0, open)));
  bool keyword_only = false;
  for (const std::string& part : split_params(text.substr(open + 1, arrow - open - 1))) {
    if (part == "*") {
      keyword_only = true;
      continue;
    }
    Param param;
    param.keyword_only = keyword_only;
    size_t space = part.find(' ');
    if (space == std::string::npos) return bad(part);
    if (!parse_type(std::string_view(part).substr(0, space), &param)) return bad(part);
    std::string rest = part.substr(space + 1);
    size_t equals = rest.find('=');
    param.name = rest.substr(0, equals);
    if (equals != std::string::npos && !parse_default(rest.substr(equals + 1), &param)) {
      return bad(part);
    }
    switch (param.type) {
      case ParamType::kTensorList:
        ++out.lists;
        break;
      case ParamType::kTensor:
      case ParamType::kObject:
        ++out.single_ids;
        break;
      case ParamType::kOperand:
        ++out.single_ids;
        [[fallthrough]];
      default:
        param.attribute = out.attributes++;
    }
    out.params.push_back(std::move(param));
  }
  out.returns = std::string(trim(text.substr(arrow + 5)));
  if (out.returns == "()") {
    out.fixed_outputs = 0;
  } else if (out.returns == "Tensor[]") {
    out.fixed_outputs = -1;
  } else if (out.returns.front() == '(') {
    auto parts = split_params(std::string_view(out.returns).substr(1, out.returns.size() - 2));
    for (const std::string& part : parts) {
      size_t space = part.find(' ');
      if (space == std::string::npos) return bad(part);
      out.outputs.push_back(part.substr(space + 1));
    }
    out.fixed_outputs = static_cast<int>(parts.size());
  }
  return out;
}

}  // namespace gradwire
