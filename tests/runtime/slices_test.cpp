// SPDX-License-Identifier: Apache-2.0
// A rank binds its slices: what it packs from a file of whole tensors equals what a model for one rank packs from a
// file of the slices only, and it touches no other parts of the file.
#include "third_party_files.h"
#include "weights/bind.h"
#include "weights/pack.h"

#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>

// bind_embedded refers to this table, which libraries with weights have.
extern "C" const char *const kiln_embedded_weights[] = {nullptr};

namespace {

using namespace kiln_test;

/// Returns random small numbers of a file's type, which every storage format can represent.
std::string drawElements(const std::string &type, uint64_t count, uint32_t seed) {
  Draw draw(seed);
  std::string bytes;
  for (uint64_t i = 0; i < count; ++i) {
    const float value = static_cast<float>(draw(20001) - 10000) / 64;
    if (type == "F32")
      append(bytes, value);
    else if (type == "I32")
      append(bytes, draw(1 << 23) - 1000);
    else if (type == "I8" || type == "BOOL")
      append(bytes, static_cast<int8_t>(draw(type == "I8" ? 256 : 2)));
    else
      append(bytes, rounded(type == "F16" ? KILN_F16 : KILN_BF16, value));
  }
  return bytes;
}

size_t bytesOfType(const std::string &type) {
  return type == "F32" || type == "I32" ? 4 : type == "F16" || type == "BF16" ? 2 : 1;
}

struct Stored {
  kiln_dtype_t Weight, As;
  const char *File;
  uint32_t Word = 0;
};

/// Returns a layout of a matrix or, with tile 0, of any tensor.
kiln_placement_t placementOf(const kiln_weight_t &weight, const Stored &stored, uint32_t tile, uint32_t dim,
                             uint64_t shift) {
  if (stored.As == stored.Weight)
    return makePlacement(0, 0, tile, dim, shift, stored.As);
  return makeStoredPlacement(stored.As, static_cast<uint64_t>(weight.shape[dim]), kiln_elements_except(&weight, dim),
                             tile, dim, shift, stored.Word, /*hasZeros=*/true);
}

struct SliceCase {
  std::vector<int64_t> Slice;
  Sections How;
  uint32_t Ranks;
};

/// Queries of each rank, and keys that two ranks share.
Sections withSharedKeys(uint32_t dim) { return {dim, 28, {{0, 5, 5, 1, 0}, {20, 4, 4, 2, 0}}}; }

const SliceCase SliceCases[] = {
    {{5}, equalParts(0, 3, 5), 3},          // a bias
    {{7}, sharesOf(0, {16, 4, 8}, 4), 4},   // the bias of several concatenated layers of unequal widths
    {{6, 5}, equalParts(0, 4, 6), 4},       // rows
    {{6, 5}, equalParts(1, 4, 5), 4},       // columns
    {{33, 40}, equalParts(0, 2, 33, 2), 4}, // two ranks have the same slice
    {{33, 40}, equalParts(1, 2, 40, 2), 4}, //
    {{51, 9}, sharesOf(0, {34, 34, 34}, 2), 2},
    {{17, 27}, sharesOf(1, {18, 18, 18}, 2), 2},
    {{20, 9}, sharesOf(0, {32, 4, 4}, 2), 2}, // grouped-query attention
    {{17, 20}, sharesOf(1, {32, 4, 4}, 2), 2},
    {{13}, sharesOf(0, {51}, 4), 4}, // not divisible by the number of ranks
    {{13, 9}, sharesOf(0, {51}, 4), 4},
    {{9, 13}, sharesOf(1, {50}, 4), 4},
    {{9, 17}, withSharedKeys(0), 4},
    {{17, 9}, withSharedKeys(1), 4},
    {{3, 4, 5}, equalParts(0, 2, 3), 2},    //
    {{3, 4, 5}, equalParts(1, 3, 4), 3},    //
    {{3, 4, 5}, sharesOf(1, {6, 2}, 2), 2}, //
    {{3, 4, 5}, equalParts(2, 3, 5), 3},    //
    {{130, 70}, equalParts(1, 3, 70), 3},   // more than one block of the conversion
    {{1, 300000}, equalParts(0, 2, 1), 2},  // more than is read before pages are released
    {{700, 300}, equalParts(1, 2, 300), 2},
    {{700, 300}, sharesOf(1, {400, 200}, 2), 2},
};

const Stored Kinds[] = {{KILN_F32, KILN_F32, "F32"},   {KILN_F32, KILN_F32, "F16"},    {KILN_F32, KILN_F32, "BF16"},
                        {KILN_F16, KILN_F16, "F16"},   {KILN_BF16, KILN_BF16, "F32"},  {KILN_I8, KILN_I8, "I8"},
                        {KILN_I32, KILN_I32, "I32"},   {KILN_BOOL, KILN_BOOL, "BOOL"}, {KILN_F32, KILN_F16, "F32"},
                        {KILN_F32, KILN_BF16, "F16"},  {KILN_F32, KILN_I8, "F32"},     {KILN_F32, KILN_I8, "F16"},
                        {KILN_F32, KILN_I8, "F32", 2}, {KILN_F32, KILN_I8, "BF16", 4}};

struct Layout {
  uint32_t Tile, Dim;
  uint64_t Shift;
};
const Layout Layouts[] = {{0, 0, 0}, {0, 0, 7}, {16, 0, 0}, {8, 0, 3}, {16, 1, 0}, {8, 1, 5}};

bool isPossible(const SliceCase &test, const Stored &kind, const Layout &layout) {
  if (layout.Tile == 0)
    return kind.Weight == kind.As;
  return test.Slice.size() >= 2 && (layout.Dim == 0 || test.Slice.size() == 2);
}

void tryCase(const SliceCase &test, const Stored &kind, const Layout &layout, uint32_t seed) {
  const kiln_weight_t weight = weightOf("w", kind.Weight, test.Slice);
  const kiln_placement_t place = placementOf(weight, kind, layout.Tile, layout.Dim, layout.Shift);
  const uint64_t bytes = kiln_pack_bytes(&weight, &place);
  const std::vector<int64_t> whole = wholeShape(test.Slice, test.How);
  const std::string elements = drawElements(kind.File, productOf(whole), seed);
  const TemporaryFile file(makeImage({{"w", kind.File, whole, elements}}));
  ASSERT_GT(bytes, 0u);
  for (uint32_t rank = 0; rank < test.Ranks; ++rank) {
    BoundModel one({weight}, {place}, bytes), ranked({weight}, {place}, bytes, rank, test.Ranks, {test.How});
    const std::string part = sliceOf(elements, test.Slice, test.How, rank, bytesOfType(kind.File));
    ASSERT_EQ(one.bind({{"w", kind.File, test.Slice, part}}), KILN_OK) << one.Error.message;
    ASSERT_EQ(ranked.bind({{"w", kind.File, whole, elements}}), KILN_OK) << ranked.Error.message;
    ASSERT_EQ(ranked.packed(), one.packed()) << "rank " << rank;
    ASSERT_EQ(kiln_bind_weights(ranked.Model, file.path(), &ranked.Error), KILN_OK) << ranked.Error.message;
    ASSERT_EQ(ranked.packed(), one.packed()) << "rank " << rank << " of a file";
  }
}

TEST(Slices, ArePackedAsIfTheFileHadNothingElse) {
  uint32_t seed = 0;
  for (const SliceCase &test : SliceCases)
    for (const Stored &kind : Kinds)
      for (const Layout &layout : Layouts) {
        // Large cases are tested with a sample of the storage formats only.
        if (!isPossible(test, kind, layout) || (productOf(test.Slice) > 100000 && seed++ % 12 != 0))
          continue;
        SCOPED_TRACE(testing::Message() << kiln_safetensors_dtype_text(kind.Weight) << " of " << kind.File << " as "
                                        << kind.As << " in tiles of " << layout.Tile << " along " << layout.Dim
                                        << ", dimension " << test.How.Dim << " of " << test.How.Extent << " in "
                                        << test.How.All.size());
        ASSERT_NO_FATAL_FAILURE(tryCase(test, kind, layout, ++seed));
      }
}

// Queries, keys and values in one tensor, copies of layers, and a weight that each rank has in whole. A slice has
// queries, then keys, then values.
TEST(Slices, OfOneTensorJoinedAndOfLayers) {
  constexpr uint32_t Ranks = 2;
  const Sections shares = sharesOf(0, {12, 4, 2}, Ranks);
  std::vector<kiln_weight_t> weights = {weightOf("h.{}.qkv", KILN_F32, {9, 8}), weightOf("norm", KILN_F32, {4})};
  weights[0].copies = 2;
  const std::vector<kiln_placement_t> places = {makePlacement(0, 1024, 16, 0, 0), makePlacement(2048, 0, 0, 0, 0)};
  std::vector<Tensor> tensors = {{"norm", "F32", {4}, drawElements("F32", 4, 9)}};
  for (int layer = 0; layer < 2; ++layer)
    tensors.push_back({"h." + std::to_string(layer) + ".qkv", "F32", {18, 8}, drawElements("F32", 18 * 8, layer)});
  for (uint32_t rank = 0; rank < Ranks; ++rank) {
    std::vector<Tensor> own = tensors;
    for (int layer = 1; layer <= 2; ++layer) {
      const std::string &bytes = tensors[layer].bytes;
      own[layer].shape = {9, 8};
      own[layer].bytes =
          bytes.substr(rank * 192, 192) + bytes.substr(384 + rank * 64, 64) + bytes.substr(512 + rank * 32, 32);
    }
    BoundModel one(weights, places, 2064), ranked(weights, places, 2064, rank, Ranks, {shares});
    ASSERT_EQ(one.bind(own), KILN_OK) << one.Error.message;
    ASSERT_EQ(ranked.bind(tensors), KILN_OK) << ranked.Error.message;
    EXPECT_EQ(ranked.packed(), one.packed());
    EXPECT_EQ(bytesOf(ranked.read("h.1.qkv", 0, 9, 8)), own[2].bytes);
    EXPECT_EQ(bytesOf(ranked.read("norm", 0, 4, 1)), tensors[0].bytes);
  }
}

/// Returns an int4 placement with zero points.
kiln_placement_t int4Placement(int64_t rows, int64_t columns, uint32_t group) {
  return makeStoredPlacement(KILN_I4, rows, columns, 16, 0, 0, group, /*hasZeros=*/true);
}

/// Slices a tensor of blocks of 32 elements and `blockBytes` bytes.
std::string sliceOfBlocks(const Numbers &numbers, std::vector<int64_t> slice, Sections sections, uint32_t rank,
                          size_t blockBytes) {
  slice[1] /= 32;
  if (sections.Dim == 1)
    sections = equalParts(1, sections.Extent / sections.All[0].extent, static_cast<uint64_t>(slice[1]));
  return sliceOf(numbers.Bytes, slice, sections, rank, blockBytes);
}

// Quantised tensors: as values, and unchanged if the slice begins at a group boundary.
TEST(Slices, OfQuantisedCheckpoints) {
  constexpr uint32_t Ranks = 3;
  const std::vector<int64_t> slice = {64, 96};
  struct {
    uint32_t Type;
    size_t BlockBytes;
  } const types[] = {{Q4_0, 18}, {Q8_0, 34}};
  for (const auto &type : types)
    for (uint32_t dim : {0, 1})
      for (int form = 0; form < 5; ++form) {
        const Sections shard = equalParts(dim, Ranks, static_cast<uint64_t>(slice[dim]));
        const kiln_weight_t weight = weightOf("w", KILN_F32, slice);
        const kiln_placement_t place =
            form < 2    ? makePlacement(0, 0, form == 0 ? 0 : 16, 0, 0)
            : form == 4 ? makeStoredPlacement(KILN_I8, slice[0], slice[1], 16, 0, 0, 32)
                        : makeStoredPlacement(KILN_I4, slice[form == 3], slice[form != 3], 16, form == 3, 0, 32);
        const uint64_t bytes = kiln_pack_bytes(&weight, &place);
        const std::vector<int64_t> whole = wholeShape(slice, shard);
        const Numbers numbers = drawGguf(type.Type, whole[0], whole[1], 11 + dim);
        const auto extents = [](const std::vector<int64_t> &shape) {
          return std::vector<uint64_t>{static_cast<uint64_t>(shape[1]), static_cast<uint64_t>(shape[0])};
        };
        const TemporaryFile file(makeGguf({{"w", extents(whole), type.Type, numbers.Bytes}}));
        for (uint32_t rank = 0; rank < Ranks; ++rank) {
          SCOPED_TRACE(testing::Message() << "type " << type.Type << " dim " << dim << " form " << form);
          const TemporaryFile part(makeGguf(
              {{"w", extents(slice), type.Type, sliceOfBlocks(numbers, slice, shard, rank, type.BlockBytes)}}));
          BoundModel one({weight}, {place}, bytes), ranked({weight}, {place}, bytes, rank, Ranks, {shard});
          ASSERT_EQ(kiln_bind_gguf(one.Model, part.path(), nullptr, 0, &one.Error), KILN_OK) << one.Error.message;
          ASSERT_EQ(kiln_bind_gguf(ranked.Model, file.path(), nullptr, 0, &ranked.Error), KILN_OK)
              << ranked.Error.message;
          EXPECT_EQ(ranked.packed(), one.packed());
        }
      }
}

/// Returns rows and columns of an int4 matrix, where the columns are whole groups or are within one group.
Int4Matrix partOf(const Int4Matrix &matrix, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  Int4Matrix part(rows, columns, matrix.Group, 0);
  for (int64_t n = 0; n < rows; ++n)
    for (int64_t k = 0; k < columns; ++k)
      part.Elements[n * columns + k] = matrix.Elements[(row + n) * matrix.Inputs + column + k];
  for (int64_t g = 0; g < part.groups(); ++g)
    for (int64_t n = 0; n < rows; ++n) {
      const int64_t from = (column / matrix.Group + g) * matrix.Outputs + row + n;
      part.Zeros[g * rows + n] = matrix.Zeros[from];
      part.Scales[g * rows + n] = matrix.Scales[from];
    }
  return part;
}

// Groups of a checkpoint are kept unchanged if the slice begins at a group boundary.
TEST(Slices, OfInt4KeepItsGroups) {
  constexpr uint32_t Ranks = 2;
  const Int4Matrix matrix(80, 256, 64, 3);
  for (uint32_t dim : {0, 1})
    for (bool isAwq : {false, true})
      for (uint32_t rank = 0; rank < Ranks; ++rank) {
        const std::vector<int64_t> slice = {dim ? 80 : 40, dim ? 128 : 256};
        const Sections shard = equalParts(dim, Ranks, static_cast<uint64_t>(slice[dim]));
        const kiln_weight_t weight = weightOf("m.weight", KILN_F32, slice);
        const kiln_placement_t place = int4Placement(slice[0], slice[1], 64);
        const Int4Matrix part = partOf(matrix, dim ? 0 : rank * 40, slice[0], dim ? rank * 128 : 0, slice[1]);
        const TemporaryFile whole(makeImage(isAwq ? matrix.awq("m") : matrix.gptq("m"))),
            own(makeImage(isAwq ? part.awq("m") : part.gptq("m")));
        const kiln_quantization_t kind = isAwq ? KILN_AWQ : KILN_GPTQ;
        BoundModel one({weight}, {place}, kiln_pack_bytes(&weight, &place)),
            ranked({weight}, {place}, kiln_pack_bytes(&weight, &place), rank, Ranks, {shard});
        ASSERT_EQ(kiln_bind_quantized(one.Model, own.path(), kind, nullptr, 0, &one.Error), KILN_OK)
            << one.Error.message;
        ASSERT_EQ(kiln_bind_quantized(ranked.Model, whole.path(), kind, nullptr, 0, &ranked.Error), KILN_OK)
            << ranked.Error.message;
        EXPECT_EQ(ranked.packed(), one.packed()) << "dimension " << dim << " of rank " << rank;
      }
}

// A slice that begins within a group is dequantised and quantised again.
TEST(Slices, OfInt4ThatCutGroups) {
  constexpr uint32_t Ranks = 4;
  const Int4Matrix matrix(32, 256, 128, 4);
  const std::vector<float> values = matrix.values();
  const std::vector<int64_t> slice = {32, 64};
  const Sections shard = equalParts(1, Ranks, 64);
  const kiln_weight_t weight = weightOf("m.weight", KILN_F32, slice);
  const kiln_placement_t place = int4Placement(32, 64, 64);
  const TemporaryFile whole(makeImage(matrix.gptq("m")));
  for (uint32_t rank = 0; rank < Ranks; ++rank) {
    BoundModel one({weight}, {place}, kiln_pack_bytes(&weight, &place)),
        ranked({weight}, {place}, kiln_pack_bytes(&weight, &place), rank, Ranks, {shard});
    ASSERT_EQ(one.bind({{"m.weight", "F32", slice, sliceOf(bytesOf(values), slice, shard, rank, 4)}}), KILN_OK)
        << one.Error.message;
    ASSERT_EQ(kiln_bind_quantized(ranked.Model, whole.path(), KILN_GPTQ, nullptr, 0, &ranked.Error), KILN_OK)
        << ranked.Error.message;
    EXPECT_EQ(ranked.packed(), one.packed()) << "rank " << rank;
  }
}

// Error messages refer to positions in the file.
TEST(Slices, ErrorsAreOfTheFile) {
  const Sections shard = equalParts(1, 3, 2);
  const kiln_weight_t weight = weightOf("w", KILN_F32, {2, 2});
  const kiln_placement_t place = makePlacement(0, 0, 2, 0, 0, KILN_F16);
  BoundModel model({weight}, {place}, 8, 1, 3, {shard});
  EXPECT_EQ(model.bind({{"w", "F32", {2, 2}, std::string(16, '\0')}}), KILN_WEIGHT_SHAPE);
  EXPECT_STREQ(model.Error.message, "tensor \"w\": wrong shape; expected [2, 6], got [2, 2]");
  EXPECT_EQ(model.bind({}), KILN_WEIGHT_MISSING);
  EXPECT_STREQ(model.Error.message, "tensor \"w\": not found; expected shape [2, 6] and type F32, F16 or BF16");
  EXPECT_EQ(model.bind({{"w", "I32", {2, 6}, std::string(48, '\0')}}), KILN_WEIGHT_TYPE);
  // 65520 does not fit an f16: in another rank's slice it is ignored, in the rank's own slice the message has its
  // position in the file.
  std::vector<float> values(12);
  values[0] = 65520;
  EXPECT_EQ(model.bind({{"w", "F32", {2, 6}, bytesOf(values)}}), KILN_OK) << model.Error.message;
  values[6 + 3] = 65520;
  EXPECT_EQ(model.bind({{"w", "F32", {2, 6}, bytesOf(values)}}), KILN_WEIGHT_VALUE);
  EXPECT_STREQ(model.Error.message, "tensor \"w\": value does not fit; expected one of F16, got 65520 at [1, 3]");
}

TEST(Slices, MemoryIsThatOfTheLargest) {
  const Sections rows = equalParts(0, 2, 2), columns = equalParts(1, 2, 8);
  BoundModel model({weightOf("r", KILN_F32, {2, 8}), weightOf("c", KILN_F32, {2, 8})},
                   {makePlacement(0, 0, 0, 0, 0), makePlacement(64, 0, 0, 0, 0)}, 128, 1, 2, {rows, columns});
  const std::vector<Tensor> tensors = {{"c", "F32", {2, 16}, drawElements("F32", 32, 1)},
                                       {"r", "F32", {4, 8}, drawElements("F32", 32, 2)}};
  ASSERT_EQ(model.bind(tensors), KILN_OK) << model.Error.message;
  EXPECT_EQ(model.Counter.Made, 4) << "the model, the index, the packed copy, and what is not rows of the file";
  model.Counter.Limit = model.Counter.Made + 2; // the next index and packed copy
  const std::string before = model.packed();
  EXPECT_EQ(model.bind(tensors), KILN_OUT_OF_MEMORY);
  EXPECT_STREQ(model.Error.message, "a slice of a weight: no memory; expected 64 bytes");
  EXPECT_EQ(model.packed(), before);
}

/// Makes accesses to the file's pages fault, except for the first page, which has the names of tensors, and those from
/// begin to end.
bool forbidOthers(const kiln_file_t &file, const char *begin, const char *end) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  auto *image = static_cast<char *>(const_cast<void *>(file.image));
  const size_t own = static_cast<size_t>(begin - image) / page * page;
  const size_t after = (static_cast<size_t>(end - image) + page - 1) / page * page;
  return (own <= page || mprotect(image + page, own - page, PROT_NONE) == 0) &&
         (after >= file.bytes || mprotect(image + after, file.bytes - after, PROT_NONE) == 0);
}

// Pages of a mapped file without data of the rank must not be read.
TEST(Slices, OthersPagesAreNotTouched) {
  constexpr uint32_t Ranks = 4;
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const int64_t rows = static_cast<int64_t>(8 * page / 256);
  const Sections shard = equalParts(0, Ranks, static_cast<uint64_t>(rows));
  const kiln_weight_t weight = weightOf("w", KILN_F32, {rows, 64});
  const std::string elements = drawElements("F32", Ranks * rows * 64, 5);
  const TemporaryFile path(makeImage({{"w", "F32", {Ranks * rows, 64}, elements}}));
  const kiln_placement_t places[] = {makePlacement(0, 0, 0, 0, 0), makePlacement(0, 0, 16, 0, 0),
                                     makePlacement(0, 0, 16, 1, 0, KILN_F16)};
  for (const kiln_placement_t &place : places)
    for (uint32_t rank = 0; rank < Ranks; ++rank) {
      BoundModel one({weight}, {place}, kiln_pack_bytes(&weight, &place)),
          ranked({weight}, {place}, kiln_pack_bytes(&weight, &place), rank, Ranks, {shard});
      kiln_file_t file;
      kiln_tensors_t table;
      ASSERT_EQ(kiln_file_map(path.path(), false, &file, nullptr), KILN_OK);
      ASSERT_EQ(kiln_safetensors_open_file(&file, &ranked.Model->allocator, &table, nullptr), KILN_OK);
      table.tensors[0].source = &file;
      const char *begin = table.tensors[0].data + rank * 8 * page;
      ASSERT_TRUE(forbidOthers(file, begin, begin + 8 * page));
      EXPECT_EQ(kiln_bind_tensors(ranked.Model, &table, &ranked.Error), KILN_OK) << ranked.Error.message;
      kiln_tensors_release(&table, &ranked.Model->allocator);
      kiln_file_unmap(&file);
      ASSERT_EQ(one.bind({{"w", "F32", {rows, 64}, elements.substr(rank * 8 * page, 8 * page)}}), KILN_OK);
      EXPECT_EQ(ranked.packed(), one.packed());
    }
}

// Rows are read and written by their number within the slice; files of whole weights cannot be written from slices.
TEST(Slices, RowsAreTheRanks) {
  const Sections shard = equalParts(0, 2, 3);
  kiln_weight_t weight = weightOf("w", KILN_F32, {3, 2});
  weight.flags = KILN_WEIGHT_VARIABLE;
  BoundModel model({weight}, {makePlacement(0, 0, 0, 0, 0)}, 24, 1, 2, {shard});
  const std::string elements = drawElements("F32", 12, 3);
  ASSERT_EQ(model.bind({{"w", "F32", {6, 2}, elements}}), KILN_OK) << model.Error.message;
  EXPECT_EQ(bytesOf(model.read("w", 0, 3, 2)), elements.substr(24));
  EXPECT_EQ(bytesOf(model.read("w", 2, 1, 2)), elements.substr(40));
  const float row[] = {8, 9};
  EXPECT_EQ(kiln_write_weight(model.Model, "w", 1, 1, row, &model.Error), KILN_OK) << model.Error.message;
  EXPECT_EQ(model.read("w", 1, 1, 2), std::vector<float>({8, 9}));
  EXPECT_EQ(kiln_write_weight(model.Model, "w", 3, 1, row, &model.Error), KILN_EXTENT_OUT_OF_RANGE);
  EXPECT_STREQ(model.Error.message, "weight \"w\": rows out of range; expected 3, got 1 from row 3");

  const std::string path = std::filesystem::temp_directory_path() / ("kiln_slices_" + std::to_string(getpid()));
  kiln_training_t training = {};
  char arena[8] = "";
  EXPECT_EQ(kiln_save_weights(model.Model, path.c_str(), &model.Error), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(model.Error.message, "save_weights: weights sliced; expected whole ones, got a slice of \"w\"");
  EXPECT_EQ(kiln_save_training(model.Model, arena, &training, path.c_str(), &model.Error), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(model.Error.message, "save_training: weights sliced; expected whole ones, got a slice of \"w\"");
  EXPECT_EQ(kiln_bind_embedded(model.Model, &model.Error), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(model.Error.message, "bind_embedded: weights sliced; expected whole ones, got a slice of \"w\"");
  EXPECT_FALSE(std::filesystem::exists(path));
}

// A packed file belongs to one rank.
TEST(Slices, PackedFilesAreARanks) {
  const kiln_weight_t weight = weightOf("w", KILN_F32, {3, 2});
  const Sections shard = equalParts(0, 2, 3);
  const kiln_placement_t place = makePlacement(0, 0, 0, 0, 0);
  BoundModel zero({weight}, {place}, 24, 0, 2, {shard}), one({weight}, {place}, 24, 1, 2, {shard}),
      none({weight}, {place}, 24);
  const std::string elements = drawElements("F32", 12, 3);
  ASSERT_EQ(one.bind({{"w", "F32", {6, 2}, elements}}), KILN_OK) << one.Error.message;
  const TemporaryFile file("");
  ASSERT_EQ(kiln_save_packed(one.Model, file.path(), &one.Error), KILN_OK) << one.Error.message;
  ASSERT_EQ(kiln_bind_packed(one.Model, file.path(), &one.Error), KILN_OK) << one.Error.message;
  EXPECT_EQ(one.packed(), elements.substr(24));
  EXPECT_EQ(kiln_bind_packed(zero.Model, file.path(), &zero.Error), KILN_FILE_MISMATCH);
  EXPECT_EQ(zero.Error.message, file.words() + "packed file: built for another target; expected x86-64-v2 "
                                               "(rank 0 of 2), got x86-64-v2 (rank 1 of 2)");
  EXPECT_EQ(kiln_bind_packed(none.Model, file.path(), &none.Error), KILN_FILE_MISMATCH);
  EXPECT_EQ(none.Error.message, file.words() + "packed file: built for another target; expected x86-64-v2, got "
                                               "x86-64-v2 (rank 1 of 2)");
}

} // namespace
