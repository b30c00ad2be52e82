// Row 829: Einstein's summation.
#include <algorithm>
#include <array>

#include "engine/core/promotion.h"
#include "engine/ops/linalg.h"

namespace gradwire {
namespace {

using namespace linalg;  // NOLINT: the vocabulary of this family

constexpr int kLetters = 52;
constexpr int kEllipsis = kLetters;  // stands for the unnamed dims

// A-Z, then a-z: the order of implicit outputs.
int letter_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  return -1;
}
char char_of(int letter) {
  return static_cast<char>(letter < 26 ? 'A' + letter : 'a' + letter - 26);
}

struct Equation {
  std::vector<std::vector<int>> operands;
  std::vector<int> output;
};

absl::Status parse_labels(std::string_view text, std::vector<int>* labels) {
  bool ellipsis = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text[i] == '.') {
      if (ellipsis || text.substr(i, 3) != "...") {
        return runtime_error(
            "einsum(): found '.' for operand that is not part of any ellipsis, or a second "
            "ellipsis");
      }
      ellipsis = true;
      labels->push_back(kEllipsis);
      i += 2;
      continue;
    }
    int letter = letter_of(text[i]);
    if (letter < 0) {
      return runtime_error("einsum(): invalid subscript given at index ", i,
                           " in the equation string, subscripts must be in [a-zA-Z]");
    }
    labels->push_back(letter);
  }
  return absl::OkStatus();
}

absl::StatusOr<Equation> parse(const std::string& text, size_t operands) {
  Equation eq;
  size_t arrow = text.find("->");
  std::string_view left = std::string_view(text).substr(0, arrow);
  while (true) {
    size_t comma = left.find(',');
    eq.operands.emplace_back();
    GW_RETURN_IF_ERROR(parse_labels(left.substr(0, comma), &eq.operands.back()));
    if (eq.operands.size() > operands) break;
    if (comma == std::string_view::npos) break;
    left = left.substr(comma + 1);
  }
  if (eq.operands.size() != operands) {
    return runtime_error("einsum(): ", eq.operands.size() > operands ? "fewer" : "more",
                         " operands were provided than specified in the equation");
  }
  std::array<int, kLetters + 1> count{};
  for (const auto& labels : eq.operands) {
    for (int l : labels) ++count[l];
  }
  if (arrow == std::string::npos) {
    if (count[kEllipsis]) eq.output.push_back(kEllipsis);
    for (int l = 0; l < kLetters; ++l) {
      if (count[l] == 1) eq.output.push_back(l);
    }
    return eq;
  }
  GW_RETURN_IF_ERROR(parse_labels(std::string_view(text).substr(arrow + 2), &eq.output));
  std::array<bool, kLetters + 1> seen{};
  for (int l : eq.output) {
    if (l != kEllipsis && seen[l]) {
      return runtime_error("einsum(): output subscript ", std::string(1, char_of(l)),
                           " appears more than once in the output");
    }
    if (l != kEllipsis && !count[l]) {
      return runtime_error("einsum(): output subscript ", std::string(1, char_of(l)),
                           " does not appear in the equation for any input operand");
    }
    seen[l] = true;
  }
  return eq;
}

// Sums of products of two tensors of one rank, sizes of 1 broadcasting; the dims of `summed` stay
// with size 1.
Tensor sum_of_products(Tensor a, Tensor b, const std::vector<bool>& summed) {
  int rank = a->rank();
  IntList both, left, right, inner;
  Dims batch, rows, cols;
  int64_t n_batch = 1, n_rows = 1, n_cols = 1, n_inner = 1;
  for (int d = 0; d < rank; ++d) {
    int64_t n = a->sizes[d], m = b->sizes[d];
    if (n != m && n != 1 && m != 1) {
      return poisoned(runtime_error("einsum(): operands do not broadcast with remapped shapes: ",
                                    shape_text(a->sizes), " and ", shape_text(b->sizes)));
    }
    if (summed[d] && n != 1 && m != 1) {
      inner.push_back(d);
      n_inner *= n;
    } else if (summed[d]) {
      if (n != 1) a = sum(a, {d}, true);
      if (m != 1) b = sum(b, {d}, true);
      if (a->poison || b->poison) return a->poison ? a : b;
      right.push_back(d);
      cols.push_back(1);
    } else if (n != 1 && m != 1) {
      both.push_back(d);
      batch.push_back(n);
      n_batch *= n;
    } else if (n != 1) {
      left.push_back(d);
      rows.push_back(n);
      n_rows *= n;
    } else {
      right.push_back(d);
      cols.push_back(m);
      n_cols *= m;
    }
  }
  auto joined = [](std::initializer_list<const IntList*> parts) {
    IntList all;
    for (const IntList* p : parts) all.insert(all.end(), p->begin(), p->end());
    return all;
  };
  static const OpRef bmm("bmm");
  // Sums of small integers are int64.
  DType dtype = promote(a->dtype, b->dtype);
  a = cast(a, dtype);
  b = cast(b, dtype);
  Tensor p =
      reshape(permute(a, joined({&both, &left, &inner, &right})), Dims{n_batch, n_rows, n_inner});
  Tensor q =
      reshape(permute(b, joined({&both, &inner, &right, &left})), Dims{n_batch, n_inner, n_cols});
  Dims sizes = batch;
  sizes.insert(sizes.end(), rows.begin(), rows.end());
  sizes.insert(sizes.end(), inner.size(), 1);
  sizes.insert(sizes.end(), cols.begin(), cols.end());
  Tensor out = reshape(call(bmm, {p, q}), sizes);
  IntList order = joined({&both, &left, &inner, &right}), back(rank);
  for (int i = 0; i < rank; ++i) back[order[i]] = i;
  return permute(out, back);
}

Tensors compose_einsum(const Call& call) {
  size_t count = call.inputs.size();
  if (count == 0) return fail(call, runtime_error("einsum(): must provide at least one operand"));
  auto eq = parse(call.attr(0).as_string(), count);
  if (!eq.ok()) return fail(call, eq.status());
  // How many dims the ellipsis stands for.
  int unnamed = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto& labels = eq->operands[i];
    bool ellipsis = std::find(labels.begin(), labels.end(), kEllipsis) != labels.end();
    int named = static_cast<int>(labels.size()) - (ellipsis ? 1 : 0);
    int rank = call.in(static_cast<int>(i))->rank();
    if (ellipsis ? named > rank : named != rank) {
      return fail(call, runtime_error("einsum(): the number of subscripts in the equation (", named,
                                      ") does not match the number of dimensions (", rank,
                                      ") for operand ", i,
                                      ellipsis ? ""
                                               : " and no ellipsis was "
                                                 "given"));
    }
    if (ellipsis) unnamed = std::max(unnamed, rank - named);
  }
  // Places of labels: the output's first, then those that are summed.
  std::array<int, kLetters + 1> place;
  place.fill(-1);
  int ranks = 0;
  auto give = [&](int label) {
    if (place[label] >= 0) return;
    place[label] = ranks;
    ranks += label == kEllipsis ? unnamed : 1;
  };
  for (int l : eq->output) give(l);
  int kept = ranks;
  for (const auto& labels : eq->operands) {
    for (int l : labels) give(l);
  }
  if (ranks > kMaxRank) {
    return fail(call, runtime_error("einsum(): more than ", kMaxRank, " dimensions"));
  }
  // Every operand with all places, absent ones of size 1.
  Tensors operands;
  std::vector<size_t> last(ranks, 0);
  for (size_t i = 0; i < count; ++i) {
    Tensor t = call.inputs[i];
    std::vector<int> at(ranks, -1);
    int d = 0;
    for (int l : eq->operands[i]) {
      if (l == kEllipsis) {
        int named = static_cast<int>(eq->operands[i].size()) - 1;
        int mine = call.inputs[i]->rank() - named;
        for (int k = 0; k < mine; ++k) {
          at[place[l] + unnamed - mine + k] = d++;
        }
        for (int k = 0; k < unnamed; ++k) last[place[l] + k] = i;
        continue;
      }
      last[place[l]] = i;
      int& where = at[place[l]];
      if (where < 0) {
        where = d++;
        continue;
      }
      if (t->sizes[where] != t->sizes[d]) {
        return fail(call, runtime_error("einsum(): subscript ", std::string(1, char_of(l)),
                                        " is repeated for operand ", i, " but the sizes don't ",
                                        "match, ", t->sizes[d], " != ", t->sizes[where]));
      }
      // The diagonal goes last and then back to the first's place.
      static const OpRef diagonal("diagonal");
      t = gradwire::call(diagonal, {t}, {0, int64_t{where}, int64_t{d}});
      if (t->poison) return {t};
      IntList order;
      for (int k = 0; k + 1 < t->rank(); ++k) order.push_back(k);
      order.insert(order.begin() + where, t->rank() - 1);
      t = permute(t, order);
      if (t->poison) return {t};
    }
    IntList order;
    for (int k = 0; k < ranks; ++k) {
      if (at[k] >= 0) order.push_back(at[k]);
    }
    t = permute(t, order);
    for (int k = 0; k < ranks; ++k) {
      if (at[k] < 0) t = unsqueeze(t, k);
    }
    if (t->poison) return {t};
    operands.push_back(t);
  }
  Tensor result = operands[0];
  for (size_t i = 0; i < count; ++i) {
    std::vector<bool> summed(ranks, false);
    bool any = false;
    for (int k = kept; k < ranks; ++k) {
      // The first product takes the sums of the first operand too.
      bool ends = last[k] == i || (i == 1 && last[k] == 0);
      summed[k] = ends && (i > 0 || count == 1);
      any = any || summed[k];
    }
    if (i == 0 && count > 1) continue;
    if (i == 0) {
      IntList dims;
      for (int k = kept; k < ranks; ++k) dims.push_back(k);
      if (!dims.empty()) result = sum(result, dims, true);
    } else if (any) {
      DType common = promote(result->dtype, operands[i]->dtype);
      DType inside = common == DType::kBool ? DType::kInt64 : common;  // bools: any of the products
      result = sum_of_products(cast(result, inside), cast(operands[i], inside), summed);
      if (common == DType::kBool) result = cast(result, common);
    } else {
      result = mul(result, operands[i]);
    }
    if (result->poison) return {result};
  }
  Dims sizes(result->sizes.begin(), result->sizes.begin() + kept);
  return {kept == ranks ? result : reshape(result, sizes)};
}

}  // namespace

void add_einsum_rows(Catalog& c) {
  OpDef& r = c.add(829, OpKind::kComposite, "einsum(str equation, Tensor[] operands) -> Tensor",
                   "Sums of products over the subscripts that the output lacks: \"bij,bjk->bik\". "
                   "\"...\" stands for further dims, which broadcast.");
  r.compose = compose_einsum;
}

}  // namespace gradwire
