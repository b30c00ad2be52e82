#include "engine/ops/catalog.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <tuple>

namespace gradwire {
namespace {

[[noreturn]] void broken(std::string_view what) {
  std::fprintf(stderr, "op catalog: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

std::string_view type_rule_name(TypeRule rule) {
  switch (rule) {
    case TypeRule::kPromote:
    case TypeRule::kNumeric:
    case TypeRule::kNoBool:
      return "promote";
    case TypeRule::kPromoteFloat:
      return "promote_float";
    case TypeRule::kCompare:
    case TypeRule::kLogical:
    case TypeRule::kFloatTest:
      return "bool";
    case TypeRule::kFloatOnly:
      return "float_only";
    case TypeRule::kIntegral:
      return "bitwise";
    case TypeRule::kSame:
      return "same";
  }
  return "";
}

}  // namespace

const Catalog& Catalog::get() {
  static const Catalog* catalog = new Catalog();
  return *catalog;
}

Catalog::Catalog() {
  add_command_rows(*this);
  add_graph_rows(*this);
  add_pointwise_rows(*this);
  add_math_rows(*this);
  add_activation_rows(*this);
  add_create_rows(*this);
  add_sequence_rows(*this);
  add_view_rows(*this);
  add_arrange_rows(*this);
  add_place_rows(*this);
  add_join_rows(*this);
  add_stack_rows(*this);
  add_split_rows(*this);
  add_reduce_rows(*this);
  add_matmul_rows(*this);
  add_product_rows(*this);
  add_covariance_rows(*this);
  add_einsum_rows(*this);
  add_linalg_rows(*this);
  add_linalg_solve_rows(*this);
  add_linalg_inverse_rows(*this);
  add_linalg_norm_rows(*this);
  add_distance_rows(*this);
  add_index_rows(*this);
  add_gather_rows(*this);
  add_scatter_rows(*this);
  add_lookup_rows(*this);
  add_sort_rows(*this);
  add_scan_rows(*this);
  add_statistics_rows(*this);
  add_set_rows(*this);
  add_random_rows(*this);
  add_conv_rows(*this);
  add_pool_rows(*this);
  add_unpool_rows(*this);
  add_pad_rows(*this);
  add_resample_rows(*this);
  add_grid_rows(*this);
  add_rearrange_rows(*this);
  add_norm_rows(*this);
  add_norm_group_rows(*this);
  add_norm_p_rows(*this);
  add_loss_rows(*this);
  add_pair_loss_rows(*this);
  add_margin_loss_rows(*this);
  add_ctc_rows(*this);
  add_attention_rows(*this);
  add_multihead_rows(*this);
  add_bag_rows(*this);
  add_channel_dropout_rows(*this);
  add_module_rows(*this);
  add_module_norm_rows(*this);
  add_rnn_rows(*this);
  add_rnn_layer_rows(*this);
  add_rnn_cell_rows(*this);
  add_weight_norm_rows(*this);
  add_optimizer_rows(*this);
  for (const OpDef& row : storage_) sorted_.push_back(&row);
  std::sort(sorted_.begin(), sorted_.end(),
            [](const OpDef* a, const OpDef* b) { return a->number < b->number; });
}

const OpDef* Catalog::find(std::string_view name) const {
  auto it = by_name_.find(absl::string_view(name.data(), name.size()));
  return it == by_name_.end() ? nullptr : it->second;
}

void Catalog::keep_internal(std::initializer_list<std::string_view> names) {
  for (std::string_view name : names) {
    auto it = by_name_.find(absl::string_view(name.data(), name.size()));
    if (it == by_name_.end()) broken(absl::StrCat("no row ", std::string(name)));
    const_cast<OpDef*>(it->second)->internal = true;
  }
}

OpDef& Catalog::add(uint16_t number, OpKind kind, std::string_view signature,
                    std::string_view doc) {
  auto parsed = Signature::parse(signature);
  if (!parsed.ok()) broken(std::string(parsed.status().message()));
  if (number < by_number_.size() && by_number_[number]) {
    broken(absl::StrCat("number ", number, " is taken twice: ", parsed->name));
  }
  if (by_name_.contains(parsed->name)) broken(absl::StrCat("two rows named ", parsed->name));
  OpDef& row = storage_.emplace_back();
  row.number = number;
  row.kind = kind;
  row.name = parsed->name;
  row.doc = std::string(doc);
  row.signature = *std::move(parsed);
  row.kernel = row.name.substr(row.name.rfind('.') + 1);
  if (by_number_.size() <= number) by_number_.resize(number + 1);
  by_number_[number] = &row;
  by_name_[row.name] = &row;
  return row;
}

OpDef& Catalog::pointwise(uint16_t number, std::string_view signature, std::string_view doc,
                          TypeRule rule, expr::Graph graph) {
  OpDef& row = add(number, OpKind::kPointwise, signature, doc);
  row.pointwise = std::make_unique<PointwiseDef>(row.name, std::move(graph), rule);
  row.shape_rule = "broadcast";
  row.type_rule = std::string(type_rule_name(rule));
  row.in_place = rule != TypeRule::kFloatTest;
  row.out = true;
  row.method = row.name.find('.') == std::string::npos;
  for (size_t i = 0; i < row.signature.params.size(); ++i) {
    const Param& p = row.signature.params[i];
    if (p.takes_ids() || p.type == ParamType::kScalar) {
      row.operand_params.push_back(static_cast<int>(i));
    }
  }
  if (static_cast<int>(row.operand_params.size()) != row.pointwise->graph.operands) {
    broken(absl::StrCat(row.name, ": the expression takes ", row.pointwise->graph.operands,
                        " operands, the signature has ", row.operand_params.size()));
  }
  return row;
}

#define GW_POINTWISE(Fn, N)                                                                    \
  OpDef& Catalog::pointwise(uint16_t number, std::string_view signature, std::string_view doc, \
                            TypeRule rule, Fn fn) {                                            \
    expr::Builder b;                                                                           \
    std::array<expr::E, N> e;                                                                  \
    for (int i = 0; i < N; ++i) e[i] = b.operand(i, rule == TypeRule::kLogical);               \
    expr::E result = std::apply(fn, e);                                                        \
    expr::Graph graph = b.finish(result);                                                      \
    graph.operands = N;                                                                        \
    return pointwise(number, signature, doc, rule, std::move(graph));                          \
  }
GW_POINTWISE(Unary, 1)
GW_POINTWISE(Binary, 2)
GW_POINTWISE(Ternary, 3)
GW_POINTWISE(Quaternary, 4)
#undef GW_POINTWISE

}  // namespace gradwire
