// SPDX-License-Identifier: Apache-2.0
//
// The rule texts of dsl/SPEC.md, one for each labelled constraint. The trace and the compiler's verifiers print these
// strings with the values that break the rule.
#pragma once

#include "kiln/compilers.h"

namespace kiln::rules {

/// Returns the label at the end of a rule's text, " [linear_c1]".
constexpr const char *label_of(const char *rule) {
  const char *label = rule;
  for (const char *c = rule; *c; ++c)
    if (c[0] == ' ' && c[1] == '[')
      label = c;
  return label;
}

/// Whether a rule's text says what is expected: "embedding: wrong rank of the table; expected 2 [embedding_c2]".
constexpr bool states_expected(const char *rule) {
  while (*rule && *rule != ';')
    ++rule;
  return *rule == ';';
}

// Dimensions, tensors, names.
inline constexpr const char *dim_c1 = "dimension: name too short or too long; expected 1 to 23 characters [dim_c1]";
inline constexpr const char *dim_c2 = "dimension: bounds out of order; expected 1 <= min <= max [dim_c2]";
inline constexpr const char *dim_c3 =
    "product of dimensions: unsupported form; expected at most two terms of at most two symbols [dim_c3]";
inline constexpr const char *dim_c4 = "sum of dimensions: unsupported form; expected at most two terms [dim_c4]";
inline constexpr const char *dim_c5 = "dimension: other bounds than before [dim_c5]";
inline constexpr const char *dim_c6 =
    "dimension: invalid least value; expected a named dimension within its bounds [dim_c6]";
inline constexpr const char *dim_c7 = "dimension: too large; expected at most 2147483647 [dim_c7]";
inline constexpr const char *dim_c8 = "dimension: invalid name; expected an identifier in C and C++ [dim_c8]";
inline constexpr const char *dim_c9 = "named dimension: in no input or state; expected one that has it [dim_c9]";
inline constexpr const char *tensor_c1 = "tensor: empty dimension; expected at least 1 [tensor_c1]";
inline constexpr const char *tensor_c2 = "argument: wrong element type or shape [tensor_c2]";
inline constexpr const char *tensor_c3 = "tensor: rank too large; expected at most 8 [tensor_c3]";
inline constexpr const char *tensor_c4 = "tensor: too many elements; expected at most 2147483647 [tensor_c4]";
inline constexpr const char *tensor_c5 =
    "parameter, constant or state: dynamic dimension; expected static ones [tensor_c5]";
inline constexpr const char *layer_c6 =
    "layer: its forward cannot be called with these arguments; expected a public const one that takes them [layer_c6]";
inline constexpr const char *layer_c8 =
    "layer: it cannot be called with these arguments; expected tensors, then options [layer_c8]";
inline constexpr const char *layer_c1 = "layer: name is used twice; expected different names in one owner [layer_c1]";
inline constexpr const char *layer_c9 = "layer, parameter or state: name of a stack followed by a number; expected one "
                                        "that no layer of the stack may have [layer_c9]";
inline constexpr const char *layer_c2 = "layer: missing name; expected a non-empty one [layer_c2]";
inline constexpr const char *layer_c4 = "layer, parameter or state: invalid character in the name; expected printable "
                                        "ASCII without quotes, backslashes and braces [layer_c4]";
inline constexpr const char *parameter_c1 = "parameter: another element type or shape than before [parameter_c1]";
inline constexpr const char *parameter_c2 =
    "parameter of a stack's layer: used outside the stack; expected a use inside it [parameter_c2]";
inline constexpr const char *parameter_c3 = "parameter or state: missing name; expected a non-empty one [parameter_c3]";
inline constexpr const char *parameter_c4 =
    "parameter or state: full name is used twice; expected different ones [parameter_c4]";
inline constexpr const char *parameter_c5 = "parameter: another storage than before [parameter_c5]";
inline constexpr const char *parameter_c6 =
    "parameter stored in fewer bits: rank too small; expected 2 or more [parameter_c6]";
inline constexpr const char *parameter_c7 = "parameter stored in fewer bits: unsupported use; expected the weight of "
                                            "linear, grouped_linear, matmul, conv2d without groups or embedding "
                                            "[parameter_c7]";

// Sources.
inline constexpr const char *constant_c1 = "constant: wrong number of values [constant_c1]";
inline constexpr const char *constant_c2 = "constant: value does not fit the element type [constant_c2]";
inline constexpr const char *embedding_c1 = "embedding: wrong type of the indices; expected i32 [embedding_c1]";
inline constexpr const char *embedding_c2 = "embedding: wrong rank of the table; expected 2 [embedding_c2]";
inline constexpr const char *embedding_c3 = "embedding: too few rows for the positions [embedding_c3]";
inline constexpr const char *embedding_c4 =
    "embedding: wrong element type of the table; expected a floating-point one [embedding_c4]";
inline constexpr const char *positions_c1 = "positions: axis out of range; expected one within the rank [positions_c1]";
inline constexpr const char *sinusoidal_c1 =
    "sinusoidal: wrong type or rank of the positions; expected i32 or f32 of rank 1 or more, and of 2 or more if pairs "
    "have axes [sinusoidal_c1]";
inline constexpr const char *sinusoidal_c2 = "sinusoidal: odd width; expected an even one [sinusoidal_c2]";
inline constexpr const char *sinusoidal_c3 = "sinusoidal: base too small; expected one above 1 [sinusoidal_c3]";
inline constexpr const char *sinusoidal_c4 =
    "sinusoidal: wrong frequency of a pair; expected one from 0 to 65536 [sinusoidal_c4]";
inline constexpr const char *sinusoidal_c5 =
    "sinusoidal: wrong first extent of the positions, which is the number of axes [sinusoidal_c5]";
inline constexpr const char *sinusoidal_c6 =
    "sinusoidal: wrong axis of a pair; expected one of those that the positions have [sinusoidal_c6]";

// Contractions.
inline constexpr const char *linear_c1 = "linear: wrong input width [linear_c1]";
inline constexpr const char *linear_c2 = "linear: input without dimensions; expected rank 1 or more [linear_c2]";
inline constexpr const char *linear_c3 = "linear: wrong rank of the weight; expected 2 [linear_c3]";
inline constexpr const char *linear_c4 = "linear: wrong bias shape [linear_c4]";
inline constexpr const char *linear_c5 = "linear: wrong element types; expected one floating-point type [linear_c5]";
inline constexpr const char *logits_c1 = "logits: wrong input width [logits_c1]";

inline constexpr const char *grouped_linear_c1 =
    "grouped_linear: wrong rank of the input; expected 2 [grouped_linear_c1]";
inline constexpr const char *grouped_linear_c2 =
    "grouped_linear: wrong weight; expected rank 2 and static extents [grouped_linear_c2]";
inline constexpr const char *grouped_linear_c3 =
    "grouped_linear: wrong ends; expected i32 of rank 1 with a static extent [grouped_linear_c3]";
inline constexpr const char *grouped_linear_c4 =
    "grouped_linear: wrong rows of the weight; expected the same number for each group [grouped_linear_c4]";
inline constexpr const char *grouped_linear_c5 = "grouped_linear: wrong input width [grouped_linear_c5]";
inline constexpr const char *grouped_linear_c6 = "grouped_linear: wrong shape of the biases [grouped_linear_c6]";
inline constexpr const char *grouped_linear_c7 =
    "grouped_linear: wrong element types; expected one floating-point type [grouped_linear_c7]";
inline constexpr const char *experts_c2 = "experts: wrong width of the tokens [experts_c2]";

inline constexpr const char *matmul_c1 = "matmul: wrong inner dimension [matmul_c1]";
inline constexpr const char *matmul_c2 = "matmul: rank too small; expected 2 or more [matmul_c2]";
inline constexpr const char *matmul_c3 =
    "matmul: leading dimensions do not broadcast; expected equal ones or 1 [matmul_c3]";
inline constexpr const char *matmul_c4 = "matmul: wrong element types; expected one floating-point type [matmul_c4]";
inline constexpr const char *einsum_c1 =
    "einsum: malformed equation; expected one or two lists of letters, -> and a list of letters [einsum_c1]";
inline constexpr const char *einsum_c2 =
    "einsum: ellipsis in the equation; expected a letter for each axis, since no axes broadcast [einsum_c2]";
inline constexpr const char *einsum_c3 =
    "einsum: letter twice in one list; expected different ones, since diagonals are not supported [einsum_c3]";
inline constexpr const char *einsum_c4 =
    "einsum: unknown letter in the result; expected letters of the operands [einsum_c4]";
inline constexpr const char *einsum_c5 =
    "einsum: wrong number of operands; expected one or two, one for each list of the equation [einsum_c5]";
inline constexpr const char *einsum_c6 = "einsum: wrong rank; expected a letter for each axis [einsum_c6]";
inline constexpr const char *einsum_c7 =
    "einsum: different dimensions of a letter; expected equal ones, since no axes broadcast [einsum_c7]";
inline constexpr const char *einsum_c8 =
    "einsum: wrong element type; expected one floating-point type, or numbers for one operand [einsum_c8]";
inline constexpr const char *attention_c1 = "attention: query width is not divisible by the heads [attention_c1]";
inline constexpr const char *attention_c2 = "attention: wrong width of the keys [attention_c2]";
inline constexpr const char *attention_c3 = "attention: value width is not divisible by the heads [attention_c3]";
inline constexpr const char *attention_c4 = "attention: wrong number of values [attention_c4]";
inline constexpr const char *attention_c5 =
    "attention: different leading dimensions; expected the same for queries, keys and values [attention_c5]";
inline constexpr const char *attention_c6 =
    "attention: rank too small; expected 2 or more for queries, keys and values [attention_c6]";
inline constexpr const char *attention_c7 = "attention: mask does not broadcast to [..., queries, keys] [attention_c7]";
inline constexpr const char *attention_c8 = "attention: wrong element type of the mask [attention_c8]";
inline constexpr const char *attention_c9 = "attention: wrong type or shape of the lengths [attention_c9]";
inline constexpr const char *attention_c10 = "causal attention: fewer keys than queries [attention_c10]";
inline constexpr const char *attention_c11 = "attention: scale is not positive; expected one above 0 [attention_c11]";
inline constexpr const char *attention_c12 =
    "attention: wrong element types; expected one floating-point type for queries, keys and values [attention_c12]";
inline constexpr const char *conv2d_c1 =
    "conv2d: wrong rank of the image; expected [..., height, width, channels] of rank 3 or more [conv2d_c1]";
inline constexpr const char *conv2d_c2 = "conv2d: invalid weight; expected [outputs, channels / groups, kernel height, "
                                         "kernel width] of static dimensions [conv2d_c2]";
inline constexpr const char *conv2d_c3 = "conv2d: wrong number of channels [conv2d_c3]";
inline constexpr const char *conv2d_c4 = "conv2d: outputs are not divisible by the groups [conv2d_c4]";
inline constexpr const char *conv2d_c5 = "conv2d: wrong bias shape [conv2d_c5]";
inline constexpr const char *conv2d_c6 = "conv2d: wrong element types; expected one floating-point type [conv2d_c6]";
inline constexpr const char *window_c1 = "window: invalid stride, dilation or padding; expected a stride and a "
                                         "dilation of at least 1 and a padding of at least 0 [window_c1]";
inline constexpr const char *window_c2 =
    "window: larger than the padded image; expected an image that holds it [window_c2]";
inline constexpr const char *window_c3 = "window: dynamic image dimension is not divisible by the stride [window_c3]";
inline constexpr const char *window_c4 = "window: empty dimension; expected at least 1 [window_c4]";
inline constexpr const char *additive_c1 =
    "additive attention: rank too small; expected 2 or more for queries and keys [additive_c1]";
inline constexpr const char *attention_c16 =
    "attention: number of heads is not divisible by that of keys and values [attention_c16]";
inline constexpr const char *attention_c17 =
    "attention: invalid window; expected at least one key, of causal attention [attention_c17]";
inline constexpr const char *attention_c18 =
    "attention: limit of the scores is not positive; expected one above 0 [attention_c18]";
inline constexpr const char *attention_c19 = "attention: wrong type or shape of the sinks [attention_c19]";
inline constexpr const char *alibi_c1 = "alibi: fewer keys than queries [alibi_c1]";
inline constexpr const char *alibi_c2 = "alibi: wrong type or shape of the slopes [alibi_c2]";
inline constexpr const char *distance_bias_c1 = "distance_bias: fewer keys than queries [distance_bias_c1]";
inline constexpr const char *distance_bias_c2 = "distance_bias: wrong type or shape of the table [distance_bias_c2]";
inline constexpr const char *documents_c1 = "documents: fewer keys than queries [documents_c1]";
inline constexpr const char *documents_c2 = "documents: wrong type or shape of the lengths [documents_c2]";
inline constexpr const char *rotary_c1 = "rotary: width of the heads is not even [rotary_c1]";
inline constexpr const char *rotary_c2 = "rotary: wrong shape of the angles [rotary_c2]";

// Elementwise.
inline constexpr const char *broadcast_c1 =
    "elementwise operation: shapes do not broadcast; expected dimensions that are equal or 1 [broadcast_c1]";
inline constexpr const char *broadcast_c2 =
    "elementwise operation: different element types; expected one [broadcast_c2]";
inline constexpr const char *broadcast_c3 =
    "arithmetic or comparison: boolean operand; expected numbers [broadcast_c3]";
inline constexpr const char *broadcast_c4 =
    "elementwise operation: an operand is no tensor; expected tensors and numbers, kiln::constant of an array, or one "
    "of several values [broadcast_c4]";
inline constexpr const char *logic_c1 = "logic: wrong element type; expected booleans [logic_c1]";
inline constexpr const char *cast_c1 = "cast: unsupported result type; expected f32, f16, bf16, i32 or i8 [cast_c1]";
inline constexpr const char *where_c1 = "where: wrong type of the condition; expected booleans [where_c1]";
inline constexpr const char *where_c2 =
    "where: both choices are numbers; expected a tensor, or kiln::cast of the condition for 1 and 0 [where_c2]";
inline constexpr const char *unary_c1 =
    "elementwise function: wrong element type; expected a floating-point one [unary_c1]";
inline constexpr const char *clamp_c1 = "clamp: lower bound above the upper one [clamp_c1]";
inline constexpr const char *hardtanh_c1 = "hardtanh: lower bound not below the upper one [hardtanh_c1]";
inline constexpr const char *celu_c1 = "celu: alpha is not positive; expected one above 0 [celu_c1]";
inline constexpr const char *remainder_c1 = "remainder: wrong element type; expected i32 [remainder_c1]";
inline constexpr const char *dropout_c1 = "dropout: probability out of range; expected one in [0, 1) [dropout_c1]";
inline constexpr const char *running_average_c1 =
    "running_average: operand is no kept parameter; expected one [running_average_c1]";
inline constexpr const char *running_average_c2 =
    "running_average: wrong type or shape of the value or the target [running_average_c2]";
inline constexpr const char *running_average_c3 =
    "running_average: rate out of range; expected one in (0, 1] [running_average_c3]";

// Rows and reductions.
inline constexpr const char *softmax_c1 = "softmax: axis out of range; expected one within the rank [softmax_c1]";
inline constexpr const char *softmax_c2 = "softmax: wrong element type; expected a floating-point one [softmax_c2]";
inline constexpr const char *logsumexp_c1 =
    "logsumexp: wrong element type; expected a floating-point one [logsumexp_c1]";
inline constexpr const char *layer_norm_c1 = "layer_norm: wrong input width [layer_norm_c1]";
inline constexpr const char *layer_norm_c2 = "layer_norm: wrong bias shape [layer_norm_c2]";
inline constexpr const char *layer_norm_c3 =
    "layer_norm: epsilon is not positive; expected one above 0 [layer_norm_c3]";
inline constexpr const char *layer_norm_c4 =
    "layer_norm: wrong element types; expected one floating-point type [layer_norm_c4]";
inline constexpr const char *rms_norm_c1 = "rms_norm: wrong input width [rms_norm_c1]";
inline constexpr const char *rms_norm_c2 = "rms_norm: epsilon is not positive; expected one above 0 [rms_norm_c2]";
inline constexpr const char *rms_norm_c3 =
    "rms_norm: wrong element types; expected one floating-point type [rms_norm_c3]";
inline constexpr const char *reduction_c1 = "reduction: axis out of range; expected one within the rank [reduction_c1]";
inline constexpr const char *reduction_c2 = "mean: wrong element type; expected a floating-point one [reduction_c2]";
inline constexpr const char *reduction_c3 = "reduction: wrong element type; expected numbers [reduction_c3]";
inline constexpr const char *l2_normalize_c1 =
    "l2_normalize: epsilon is not positive; expected one above 0 [l2_normalize_c1]";
inline constexpr const char *topk_c1 = "topk: count is not from 1 to the axis's dimension [topk_c1]";
inline constexpr const char *tril_c1 = "tril or triu: rank too small; expected matrices [..., rows, columns] [tril_c1]";
inline constexpr const char *batch_norm_c1 = "batch_norm: wrong input width [batch_norm_c1]";
inline constexpr const char *group_norm_c1 =
    "group_norm: wrong rank of the image, or channels that the groups do not divide [group_norm_c1]";
inline constexpr const char *group_norm_c2 =
    "group_norm: epsilon is not positive; expected one above 0 [group_norm_c2]";
inline constexpr const char *group_norm_c3 = "group_norm: wrong shape of the weight or the bias [group_norm_c3]";
inline constexpr const char *conv1d_c1 = "conv1d: wrong rank of the signal or the weight; expected [..., steps, "
                                         "channels] and [outputs, channels / groups, kernel] [conv1d_c1]";
inline constexpr const char *conv_transpose1d_c1 = "conv_transpose1d: wrong rank of the signal or the weight; expected "
                                                   "[..., steps, channels] and [channels, outputs / "
                                                   "groups, kernel] [conv_transpose1d_c1]";
inline constexpr const char *causal_conv1d_c1 = "causal_conv1d: wrong rank of the stream or the weight; expected "
                                                "[steps, channels] and [outputs, channels / groups, "
                                                "kernel] [causal_conv1d_c1]";
inline constexpr const char *causal_conv1d_c2 =
    "causal_conv1d: invalid options; expected a stride and a dilation of at least 1, and no padding [causal_conv1d_c2]";
inline constexpr const char *causal_conv1d_c3 =
    "causal_conv1d: the stride does not divide the number of steps [causal_conv1d_c3]";
inline constexpr const char *conv_transpose2d_c1 =
    "conv_transpose2d: invalid image or weight; expected [..., height, width, channels] and [channels, outputs / "
    "groups, kernel height, kernel width] of static dimensions [conv_transpose2d_c1]";
inline constexpr const char *conv_transpose2d_c2 =
    "conv_transpose2d: padding too large; expected a padding below the dilated kernel and an output padding below the "
    "stride [conv_transpose2d_c2]";
inline constexpr const char *conv3d_c1 =
    "conv3d: invalid volume or weight; expected [..., depth, height, width, channels] and [outputs, channels / groups, "
    "kernel depth, kernel height, kernel width] of static dimensions [conv3d_c1]";
inline constexpr const char *conv3d_c2 =
    "conv3d: wrong channels or outputs; expected the weight's channels times the groups, and outputs that the groups "
    "divide [conv3d_c2]";
inline constexpr const char *pool3d_c1 =
    "pool: wrong rank or dynamic channels of the volume; expected [..., depth, height, width, channels] of rank 4 or "
    "more [pool3d_c1]";
inline constexpr const char *pool2d_c1 =
    "pool: wrong rank of the image; expected [..., height, width, channels] of rank 3 or more [pool2d_c1]";
inline constexpr const char *pool2d_c2 = "pool: wrong element type; expected a floating-point one [pool2d_c2]";
inline constexpr const char *pool2d_c3 = "pool: padding above half of the kernel [pool2d_c3]";
inline constexpr const char *pool2d_c4 =
    "adaptive_avg_pool2d: image is dynamic or not divisible by the result [pool2d_c4]";
inline constexpr const char *resize_bilinear_c1 = "resize_bilinear: wrong rank of the image; expected [..., height, "
                                                  "width, channels] of rank 3 or more [resize_bilinear_c1]";
inline constexpr const char *resize_bilinear_c2 =
    "resize_bilinear: dynamic dimension of the image; expected static ones [resize_bilinear_c2]";
inline constexpr const char *resize_bilinear_c3 =
    "resize_bilinear: wrong element type; expected a floating-point one [resize_bilinear_c3]";
inline constexpr const char *stft_c1 = "stft: invalid signal; expected f32 [..., samples] of rank 1 to 4 [stft_c1]";
inline constexpr const char *stft_c2 =
    "stft or istft: invalid frames; expected 2 to 65536 samples, 1 to 65536 apart [stft_c2]";
inline constexpr const char *stft_c3 = "stft or istft: invalid window; expected one not longer than a frame [stft_c3]";
inline constexpr const char *stft_c4 = "stft: signal shorter than a frame, or a dynamic number of samples that the "
                                       "distance of frames does not divide [stft_c4]";
inline constexpr const char *istft_c1 = "istft: invalid spectra; expected two of f32 [..., frames, samples / 2 + 1] of "
                                        "rank 2 to 5 [istft_c1]";
inline constexpr const char *istft_c2 = "istft: no samples; expected more frames [istft_c2]";
inline constexpr const char *mel_c1 =
    "mel: invalid power spectrum or number of filters; expected f32 [..., bins] of two or more bins [mel_c1]";
inline constexpr const char *mel_c2 =
    "mel: frequencies are not from 0 to half of the rate in increasing order [mel_c2]";
inline constexpr const char *resize_nearest_c1 = "resize_nearest: wrong rank or dynamic height or width of the image; "
                                                 "expected [..., height, width, channels] of rank "
                                                 "3 or more [resize_nearest_c1]";
inline constexpr const char *resize_nearest_c2 =
    "resize_nearest: empty height or width of the result; expected at least 1 [resize_nearest_c2]";
inline constexpr const char *resize_bicubic_c1 =
    "bicubic or antialiased resize: wrong rank or dynamic height or width of the image; expected [..., height, width, "
    "channels] of rank 3 or more [resize_bicubic_c1]";
inline constexpr const char *resize_bicubic_c2 =
    "bicubic or antialiased resize: empty height or width of the result; expected at least 1 [resize_bicubic_c2]";
inline constexpr const char *resize_bicubic_c3 =
    "bicubic or antialiased resize: wrong element type; expected a floating-point one [resize_bicubic_c3]";
inline constexpr const char *grid_sample_c1 = "grid_sample: shapes do not match; expected an image [B, H, W, C] of "
                                              "static height and width and a grid [B, h, w, 2] "
                                              "[grid_sample_c1]";
inline constexpr const char *grid_sample_c2 =
    "grid_sample: wrong element types; expected one floating-point type [grid_sample_c2]";

// Data movement.
inline constexpr const char *reshape_c1 = "reshape: another number of elements [reshape_c1]";
inline constexpr const char *expand_c1 = "expand: shape does not broadcast to the result's [expand_c1]";
inline constexpr const char *unsqueeze_c1 =
    "unsqueeze: axis out of range; expected one within the result's rank [unsqueeze_c1]";
inline constexpr const char *squeeze_c1 =
    "squeeze: axis out of range, or of more than one element; expected one of dimension 1 [squeeze_c1]";
inline constexpr const char *transpose_c1 =
    "transpose: axes are no permutation; expected each axis once [transpose_c1]";
inline constexpr const char *concat_c1 = "concat: different element types or ranks; expected one of each [concat_c1]";
inline constexpr const char *concat_c2 = "concat: different dimensions on other axes; expected equal ones [concat_c2]";
inline constexpr const char *concat_c3 = "concat: axis out of range; expected one within the rank [concat_c3]";
inline constexpr const char *concat_c4 =
    "concat: dimensions of the axis have no sum; expected at most two terms [concat_c4]";
inline constexpr const char *slice_c1 = "slice: axis out of range; expected one within the rank [slice_c1]";
inline constexpr const char *slice_c2 = "slice: range outside the operand's dimension [slice_c2]";
inline constexpr const char *last_c1 = "last: axis out of range; expected one within the rank [last_c1]";
inline constexpr const char *last_c2 = "last: more elements than the operand has [last_c2]";
inline constexpr const char *pad_c1 =
    "pad: axis out of range, or negative number; expected an axis within the rank and numbers of at least 0 [pad_c1]";
inline constexpr const char *pad_c2 = "pad: more elements than the axis provides [pad_c2]";
inline constexpr const char *flip_c1 =
    "flip: axis out of range or dynamic; expected one of a static dimension [flip_c1]";
inline constexpr const char *roll_c1 = "roll: axis out of range; expected one within the rank [roll_c1]";
inline constexpr const char *one_hot_c1 = "one_hot: wrong type of the indices; expected i32 [one_hot_c1]";
inline constexpr const char *take_along_axis_c1 =
    "take_along_axis: wrong type of the indices; expected i32 [take_along_axis_c1]";
inline constexpr const char *take_along_axis_c2 =
    "take_along_axis: axis out of range; expected one within the rank [take_along_axis_c2]";
inline constexpr const char *take_along_axis_c3 =
    "take_along_axis: different ranks or dimensions on other axes; expected equal ones [take_along_axis_c3]";
inline constexpr const char *index_add_c1 =
    "index_add: wrong type or rank of the indices; expected i32 of rank 1 [index_add_c1]";
inline constexpr const char *index_add_c2 = "index_add: axis out of range; expected one within the rank [index_add_c2]";
inline constexpr const char *index_add_c3 =
    "index_add: shapes do not match; expected rows of the first operand, one for each index [index_add_c3]";
inline constexpr const char *index_add_c4 =
    "index_add: wrong element types; expected one type of numbers [index_add_c4]";
inline constexpr const char *scatter_add_c1 = "scatter_add: wrong type of the indices; expected i32 [scatter_add_c1]";
inline constexpr const char *scatter_add_c2 =
    "scatter_add: axis out of range; expected one within the rank [scatter_add_c2]";
inline constexpr const char *scatter_add_c3 =
    "scatter_add: shapes do not match; expected an index for each element, and "
    "equal dimensions on other axes [scatter_add_c3]";
inline constexpr const char *scatter_add_c4 =
    "scatter_add: wrong element types; expected one type of numbers [scatter_add_c4]";
inline constexpr const char *sort_c1 = "sort: axis out of range; expected one within the rank [sort_c1]";
inline constexpr const char *sort_c2 = "sort: wrong element type; expected numbers [sort_c2]";
inline constexpr const char *argsort_c1 = "argsort: count is not from 1 to the axis's dimension [argsort_c1]";
inline constexpr const char *pixel_shuffle_c1 =
    "pixel_shuffle: wrong rank of the image, or channels that the square of the factor does not divide "
    "[pixel_shuffle_c1]";
inline constexpr const char *pixel_unshuffle_c1 =
    "pixel_unshuffle: wrong rank of the image, or height or width that the factor does not divide "
    "[pixel_unshuffle_c1]";
inline constexpr const char *unfold_c1 = "unfold: wrong rank of the image; expected [..., height, width, channels] of "
                                         "rank 3 or more [unfold_c1]";
inline constexpr const char *fold_c1 = "fold: wrong number of windows or of their elements [fold_c1]";
inline constexpr const char *windows_c1 =
    "windows: wrong rank of the image, or height or width that they do not divide [windows_c1]";
inline constexpr const char *relative_bias_c1 =
    "relative_bias: table without a row for each difference of positions [relative_bias_c1]";
inline constexpr const char *gather_c1 = "gather: wrong type of the indices; expected i32 [gather_c1]";
inline constexpr const char *gather_c2 = "gather: axis out of range; expected one within the rank [gather_c2]";

// Structure.
inline constexpr const char *stack_c1 = "stack: layer returns another type than its argument's [stack_c1]";
inline constexpr const char *stack_c2 = "stack: invalid number of layers; expected at least one [stack_c2]";
inline constexpr const char *stack_c3 =
    "stack: too many layers; expected at most 1048576, with those of the stacks around it [stack_c3]";
inline constexpr const char *stack_c6 =
    "stack: first dimension of per_layer differs from the number of layers [stack_c6]";
inline constexpr const char *scan_c1 = "scan: sequences differ in the first dimension [scan_c1]";
inline constexpr const char *scan_c2 = "scan: step changes the state's type [scan_c2]";
inline constexpr const char *scan_until_c2 =
    "scan_until: wrong type of the end; expected a boolean scalar [scan_until_c2]";
inline constexpr const char *state_c1 = "state: used outside its owner or in a loop; expected uses in the entry or the "
                                        "stack that owns it, outside of loops inside of that [state_c1]";
inline constexpr const char *state_c2 = "state: appended to and used again; expected at most one append in an entry, "
                                        "and no read or replacement then [state_c2]";
inline constexpr const char *state_c3 = "state: replaced twice; expected at most once in an entry [state_c3]";
inline constexpr const char *state_c5 = "state: another element type or shape than before [state_c5]";
inline constexpr const char *append_c1 = "append: wrong element type or shape of the rows [append_c1]";
inline constexpr const char *append_c2 = "append: result has fewer rows than are appended [append_c2]";
inline constexpr const char *append_c3 = "state: rows of its value do not fit [append_c3]";
inline constexpr const char *store_c1 = "store: wrong element type or shape [store_c1]";
inline constexpr const char *streaming_attention_c2 =
    "streaming attention: the stream is not in whole chunks [streaming_attention_c2]";
inline constexpr const char *recurrent_c1 =
    "recurrent layer: wrong shape of the sequence; expected [steps, ..., width] [recurrent_c1]";
inline constexpr const char *recurrent_c2 = "recurrent layer: wrong shape of the initial states; expected [layers * "
                                            "directions, ..., hidden width] [recurrent_c2]";
inline constexpr const char *recurrent_c3 = "recurrent layer: lengths are not i32, one a sequence [recurrent_c3]";
inline constexpr const char *recurrent_c7 =
    "recurrent layer: wrong element type of the sequence; expected that of its weights [recurrent_c7]";
inline constexpr const char *recurrent_c5 = "recurrent step: wrong shape of the state; expected the input's leading "
                                            "dimensions and the hidden width, two of them for an LSTM [recurrent_c5]";
inline constexpr const char *custom_c1 =
    "custom: invalid name of the function; expected an identifier in C and C++ [custom_c1]";
inline constexpr const char *custom_c3 =
    "custom: function has other types, workspace or derivative than before; expected one signature for a name "
    "[custom_c3]";
inline constexpr const char *custom_c4 =
    "custom: invalid workspace; expected 0 bytes or more, over dimensions of the operands and results [custom_c4]";
inline constexpr const char *custom_c5 =
    "custom: invalid derivative; expected the name of another function [custom_c5]";
inline constexpr const char *model_c1 = "entry: wrong number of input names [model_c1]";
inline constexpr const char *model_c2 = "entry: wrong number of output names [model_c2]";
inline constexpr const char *model_c3 = "entry: invalid name; expected identifiers in C and C++ [model_c3]";
inline constexpr const char *model_c4 =
    "entry: name is used twice; expected different names for its inputs and outputs [model_c4]";
inline constexpr const char *model_c14 =
    "variables: pattern matches no parameter; expected a parameter for each pattern [model_c14]";
inline constexpr const char *model_c15 = "variables: too many patterns; expected at most 16 [model_c15]";
inline constexpr const char *model_c16 = "variables: another storage of a weight; expected f32 [model_c16]";
inline constexpr const char *batch_c1 = "batched entry: number of sequences out of range; expected 1 to 256 [batch_c1]";
inline constexpr const char *batch_c2 = "batched entries: different numbers of sequences [batch_c2]";
inline constexpr const char *batch_c3 =
    "batched entry: wrong first dimension of an input or result; expected a static or a named one [batch_c3]";
inline constexpr const char *batch_c4 = "batched entries: different first dimensions of inputs and results [batch_c4]";
inline constexpr const char *batch_c5 =
    "batched entry: reserved name of a dimension; expected another than rows and sequences [batch_c5]";
inline constexpr const char *gradients_c1 =
    "gradients: first result is no loss; expected f32 without axes [gradients_c1]";
inline constexpr const char *train_c1 =
    "training: unsupported parameter; expected f32 that is stored as it is, or a frozen parameter [train_c1]";
inline constexpr const char *train_c2 = "optimizer: momentum or beta out of range; expected [0, 1) [train_c2]";
inline constexpr const char *train_c3 = "optimizer: epsilon is not positive; expected one above 0 [train_c3]";
inline constexpr const char *train_c4 = "optimizer: negative weight decay; expected 0 or more [train_c4]";
inline constexpr const char *train_c5 = "clipping: norm is not positive; expected one above 0 [train_c5]";
inline constexpr const char *train_c6 =
    "training: option does not fit the entry; expected clipped, averaged and without_decay for one that trains, "
    "frozen, checkpointed, activations and accumulated for one of gradients or one that trains [train_c6]";
inline constexpr const char *train_c7 =
    "accumulated: unsupported entry or number of micro-batches; expected 1 or more, and an entry without states whose "
    "inputs and results have five axes at most [train_c7]";
inline constexpr const char *train_c8 = "averaged: decay out of range; expected one in (0, 1) [train_c8]";
inline constexpr const char *train_c9 = "activations: unsupported type; expected f32 or bf16 [train_c9]";
inline constexpr const char *train_c10 =
    "frozen or without_decay: pattern matches no parameter; expected a parameter for each pattern [train_c10]";
inline constexpr const char *train_c11 = "frozen or without_decay: too many patterns; expected at most 16 [train_c11]";
inline constexpr const char *train_c12 =
    "frozen: nothing remains to train; expected patterns that leave a parameter of the entry [train_c12]";
inline constexpr const char *train_c13 =
    "without_decay: optimizer has no weight decay; expected one with a weight_decay above 0 [train_c13]";
inline constexpr const char *model_c17 =
    "model: a member of it or of its layers is mutable; expected members that a call does not change [model_c17]";
inline constexpr const char *loss_c1 = "cross_entropy: wrong type or rank of an operand; expected i32 targets, and "
                                       "floating-point logits of one axis more [loss_c1]";
inline constexpr const char *loss_c2 = "cross_entropy: label smoothing out of range; expected one in [0, 1) [loss_c2]";
inline constexpr const char *loss_c3 = "mse or binary_cross_entropy: wrong type or shape of an operand; expected two "
                                       "tensors of one floating-point type and one shape [loss_c3]";
inline constexpr const char *model_c5 = "entry: name is used twice; expected different names in one model [model_c5]";

} // namespace kiln::rules
