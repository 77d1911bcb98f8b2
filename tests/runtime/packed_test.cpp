// SPDX-License-Identifier: Apache-2.0
// Packed files: bound weights are mapped back without a copy; a file of another library or an incomplete file is
// refused with a message; and a file in use can be replaced.
#include "../read_file.h"
#include "support.h"

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace {

using namespace kiln_test;
namespace fs = std::filesystem;

constexpr size_t Head = 4096;

using kiln::testing::readFile;

/// Returns the permissions of the mapping that contains an address, such as "r--p".
std::string permissionsAt(const void *address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uint64_t begin = 0, end = 0;
    char permissions[5] = "";
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, permissions) == 3 &&
        begin <= reinterpret_cast<uintptr_t>(address) && reinterpret_cast<uintptr_t>(address) < end)
      return permissions;
  }
  return "";
}

/// The test model, whose data a test may change before it creates models.
class Packed : public testing::Test {
protected:
  CountingAllocator Counter;
  kiln_allocator_t Functions = Counter.get();
  std::vector<kiln_weight_t> Weights{kiln_descriptor.weights, kiln_descriptor.weights + kiln_descriptor.weight_count};
  kiln_variant_t Variant = kiln_descriptor.variants[0];
  kiln_descriptor_t Descriptor = kiln_descriptor;
  kiln_error_t Error = {};
  TemporaryFile File{""};
  std::string Path = File.path();
  std::vector<kiln_model_t *> Made;

  Packed() {
    for (uint64_t i = 0; i < 4; ++i)
      Variant.digest[i] = 0x0123456789ABCDEF * (i + 1);
    Descriptor.weights = Weights.data();
    Descriptor.variants = &Variant;
  }
  void TearDown() override {
    for (kiln_model_t *model : Made)
      kiln_destroy(model);
    EXPECT_EQ(Counter.Alive, 0) << "something was not released";
    for (const fs::directory_entry &entry : fs::directory_iterator(fs::path(Path).parent_path()))
      EXPECT_FALSE(entry.path().string().starts_with(Path + ".")) << "left behind: " << entry.path();
  }
  kiln_model_t *create() {
    const kiln_cpu_t cpu = kiln_cpu_detect();
    const kiln_options_t options = {.allocator = &Functions};
    EXPECT_EQ(kiln_model_create(&Descriptor, &cpu, &options, &Made.emplace_back(), &Error), KILN_OK) << Error.message;
    return Made.back();
  }
  /// Creates a model with the weights of a file, in which a byte of "table" may be changed.
  kiln_model_t *createBound(char change = 0) {
    std::vector<Tensor> weights = testWeights();
    weights[2].bytes[0] ^= change;
    const std::string image = makeImage(weights);
    kiln_model_t *model = create();
    EXPECT_EQ(kiln_bind_weights_from_memory(model, image.data(), image.size(), &Error), KILN_OK) << Error.message;
    return model;
  }
  kiln_status_t bind(kiln_model_t *model) { return kiln_bind_packed(model, Path.c_str(), &Error); }
  kiln_status_t save(const kiln_model_t *model) { return kiln_save_packed(model, Path.c_str(), &Error); }
  std::string packedBytes(const kiln_model_t *model) { return std::string(model->packed, Variant.packed_bytes); }
};

std::vector<float> run(const kiln_model_t *model) {
  std::vector<int32_t> ids = {4, 0, 2};
  std::vector<float> rows(ids.size() * Width);
  GuardedMemory arena(4096);
  const kiln_call_t call = {arena.data(), arena.size(), nullptr, nullptr};
  const int64_t extents[] = {static_cast<int64_t>(ids.size())};
  void *const arguments[] = {ids.data(), rows.data()};
  EXPECT_EQ(kiln_run(model, &call, 0, extents, arguments), KILN_OK);
  return rows;
}

TEST_F(Packed, GivesBackWhatWasBound) {
  kiln_model_t *from = createBound(), *to = create();
  ASSERT_EQ(save(from), KILN_OK) << Error.message;
  const std::string bytes = readFile(Path);
  EXPECT_EQ(bytes.size(), Head + Variant.packed_bytes);
  EXPECT_EQ(bytes.substr(0, 12), "kiln packed\n");
  EXPECT_EQ(bytes.substr(Head), packedBytes(from));
  const int made = Counter.Made;
  ASSERT_EQ(bind(to), KILN_OK) << Error.message;
  EXPECT_STREQ(Error.message, "");
  EXPECT_EQ(Counter.Made, made) << "nothing is allocated";
  EXPECT_EQ(packedBytes(to), packedBytes(from));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(to->packed) % KILN_ARENA_ALIGNMENT, 0u);
  EXPECT_EQ(run(to), expectedRows({4, 0, 2}));
  ASSERT_EQ(save(to), KILN_OK) << "onto the file that it is bound to: " << Error.message;
  EXPECT_EQ(readFile(Path), bytes);
  EXPECT_EQ(run(to), expectedRows({4, 0, 2}));
}

TEST_F(Packed, CanBeWrittenOnlyWhereAModelHasVariables) {
  kiln_model_t *written = createBound();
  ASSERT_EQ(save(written), KILN_OK);
  ASSERT_EQ(bind(written), KILN_OK) << Error.message;
  EXPECT_EQ(permissionsAt(written->packed), "rw-p");
  for (kiln_weight_t &weight : Weights)
    weight.flags = 0;
  kiln_model_t *constant = create();
  ASSERT_EQ(bind(constant), KILN_OK) << Error.message;
  EXPECT_EQ(permissionsAt(constant->packed), "r--p");
}

TEST_F(Packed, VariablesAreTheModelsOwn) {
  kiln_model_t *one = createBound(), *two = create(), *three = create();
  ASSERT_EQ(save(one), KILN_OK);
  const std::string bytes = readFile(Path), before = packedBytes(one);
  ASSERT_EQ(bind(one), KILN_OK);
  ASSERT_EQ(bind(two), KILN_OK);
  const std::vector<float> row(Width, 7.0f);
  ASSERT_EQ(kiln_write_weight(one, "layers.1.weight", 2, 1, row.data(), &Error), KILN_OK) << Error.message;
  EXPECT_NE(packedBytes(one), before);
  EXPECT_EQ(packedBytes(two), before);
  EXPECT_EQ(readFile(Path), bytes);
  ASSERT_EQ(save(one), KILN_OK) << Error.message;
  ASSERT_EQ(bind(three), KILN_OK);
  EXPECT_EQ(packedBytes(three), packedBytes(one)) << "what was written is saved";
  EXPECT_EQ(packedBytes(two), before) << "a file in use is replaced and not changed";
}

TEST_F(Packed, OtherWaysOfBindingTakeItsPlace) {
  kiln_model_t *model = createBound(), *other = createBound(1);
  const std::string mine = packedBytes(model), others = packedBytes(other);
  ASSERT_EQ(save(other), KILN_OK);
  const std::string image = makeImage(testWeights());
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(bind(model), KILN_OK);
    EXPECT_EQ(packedBytes(model), others);
    ASSERT_EQ(bind(model), KILN_OK);
    ASSERT_EQ(kiln_bind_weights_from_memory(model, image.data(), image.size(), &Error), KILN_OK);
    EXPECT_EQ(packedBytes(model), mine);
  }
}

TEST_F(Packed, OfAModelWithoutWeights) {
  Descriptor.weight_count = 0;
  Variant.packed_bytes = 0;
  const std::string image = makeImage("{}", "");
  kiln_model_t *model = create();
  ASSERT_EQ(kiln_bind_weights_from_memory(model, image.data(), image.size(), &Error), KILN_OK) << Error.message;
  ASSERT_EQ(save(model), KILN_OK) << Error.message;
  EXPECT_EQ(readFile(Path).size(), Head);
  EXPECT_EQ(bind(model), KILN_OK) << Error.message;
}

// Checks each field of the header, and the file's size.
TEST_F(Packed, FilesThatDoNotFitAreRefused) {
  kiln_model_t *model = createBound();
  ASSERT_EQ(save(model), KILN_OK);
  const std::string whole = readFile(Path), before = packedBytes(model);
  const std::string sizes = "packed file: wrong size; expected " + std::to_string(whole.size()) + " bytes, got ";
  const std::string layout =
      "packed file: built for another library; expected weights as this library of \"tiny\" stores them";
  const struct {
    std::function<void(std::string &)> Change;
    kiln_status_t Status;
    std::string Message;
  } cases[] = {
      {[](std::string &f) { f.clear(); }, KILN_FILE_MALFORMED,
       "weight file: of another kind; expected a packed file, got an empty file"},
      {[](std::string &f) { f.resize(1); }, KILN_FILE_MALFORMED, sizes + "1"},
      {[](std::string &f) { f.resize(Head - 1); }, KILN_FILE_MALFORMED, sizes + "4095"},
      {[](std::string &f) { f.resize(Head); }, KILN_FILE_MALFORMED, sizes + "4096"},
      {[](std::string &f) { f.pop_back(); }, KILN_FILE_MALFORMED, sizes + std::to_string(whole.size() - 1)},
      {[](std::string &f) { f.push_back(0); }, KILN_FILE_MALFORMED, sizes + std::to_string(whole.size() + 1)},
      {[](std::string &f) { f[0] = 'K'; }, KILN_FILE_MALFORMED,
       "packed file: wrong first bytes; expected \"kiln packed\""},
      {[](std::string &f) { f = makeImage({{"a", "F32", {2000}, std::string(8000, 'a')}}); }, KILN_FILE_MALFORMED,
       "weight file: of another kind; expected a packed file, got a safetensors file, which bind_weights reads"},
      {[](std::string &f) { f[16] = 2; }, KILN_FILE_MISMATCH, "packed file: wrong version; expected 1, got 2"},
      {[](std::string &f) { f[20] = 1; }, KILN_FILE_MISMATCH, layout},
      {[](std::string &f) { f[24] ^= 1; }, KILN_FILE_MISMATCH, layout},
      {[](std::string &f) { f[32] ^= 1; }, KILN_FILE_MISMATCH, layout},
      {[](std::string &f) { f[63] ^= 0x80; }, KILN_FILE_MISMATCH, layout},
      {[](std::string &f) { f.replace(64, 9, "x86-64-v4"); }, KILN_FILE_MISMATCH,
       "packed file: built for another target; expected x86-64-v2, got x86-64-v4"},
      {[](std::string &f) { f.replace(64, 64, std::string(64, 't')); }, KILN_FILE_MISMATCH,
       "packed file: built for another target; expected x86-64-v2, got " + std::string(64, 't')},
      {[](std::string &f) { f.replace(128, 4, "tall"); }, KILN_FILE_MISMATCH,
       "packed file: built for another model; expected \"tiny\", got \"tall\""},
      {[](std::string &f) { f.replace(128, 384, std::string(384, 'n')); }, KILN_FILE_MISMATCH,
       "packed file: built for another model; expected \"tiny\", got \"" + std::string(80, 'n') + "\""},
  };
  for (const auto &test : cases) {
    std::string file = whole;
    test.Change(file);
    std::ofstream(Path, std::ios::binary | std::ios::trunc) << file;
    const char *const packed = model->packed;
    EXPECT_EQ(bind(model), test.Status) << test.Message;
    EXPECT_EQ(Error.status, test.Status);
    EXPECT_EQ(Error.message, File.words() + test.Message);
    EXPECT_EQ(model->packed, packed);
    EXPECT_EQ(packedBytes(model), before);
  }
}

// The opposite case: the library differs from the file.
TEST_F(Packed, FilesOfOtherLibrariesAreRefused) {
  ASSERT_EQ(save(createBound()), KILN_OK);
  const kiln_variant_t own = Variant;
  Variant.digest[3] ^= 1;
  EXPECT_EQ(bind(create()), KILN_FILE_MISMATCH);
  Variant = own;
  Variant.target = "x86-64-v3";
  EXPECT_EQ(bind(create()), KILN_FILE_MISMATCH);
  EXPECT_EQ(Error.message, File.words() + "packed file: built for another target; expected x86-64-v3, got x86-64-v2");
  Variant = own;
  Variant.packed_bytes += 64;
  EXPECT_EQ(bind(create()), KILN_FILE_MISMATCH);
  Variant = own;
  Descriptor.name = "tinier";
  EXPECT_EQ(bind(create()), KILN_FILE_MISMATCH);
  EXPECT_EQ(Error.message, File.words() + "packed file: built for another model; expected \"tinier\", got \"tiny\"");
  // A name of any length; the digest covers the truncated part.
  const std::string longer(1000, 'n');
  Descriptor.name = longer.c_str();
  ASSERT_EQ(save(createBound()), KILN_OK) << Error.message;
  EXPECT_EQ(bind(create()), KILN_OK) << Error.message;
}

// Any changed byte of the header is refused, except for unused ones.
TEST_F(Packed, ChangedHeadsAreRefused) {
  kiln_model_t *model = createBound();
  ASSERT_EQ(save(model), KILN_OK);
  const std::string before = packedBytes(model);
  std::mt19937 random(20261125);
  for (int round = 0; round < 3000; ++round) {
    const size_t at = random() % 512, bytes = 1 + random() % 8;
    std::fstream file(Path, std::ios::binary | std::ios::in | std::ios::out);
    std::string old(bytes, 0), changed(bytes, 0);
    file.seekg(static_cast<std::streamoff>(at)).read(old.data(), static_cast<std::streamsize>(bytes));
    for (char &byte : changed)
      byte = static_cast<char>(random());
    changed[0] = static_cast<char>(old[0] ^ (1 + random() % 255));
    file.seekp(static_cast<std::streamoff>(at)).write(changed.data(), static_cast<std::streamsize>(bytes)).flush();
    const kiln_status_t status = bind(model);
    ASSERT_TRUE(status == KILN_FILE_MALFORMED || status == KILN_FILE_MISMATCH) << status << " at " << at;
    ASSERT_GT(std::strlen(Error.message), 20u);
    ASSERT_EQ(packedBytes(model), before);
    file.seekp(static_cast<std::streamoff>(at)).write(old.data(), static_cast<std::streamsize>(bytes));
  }
  EXPECT_EQ(bind(model), KILN_OK) << Error.message;
}

TEST_F(Packed, UnreadableFilesAreRefused) {
  kiln_model_t *model = create();
  EXPECT_EQ(kiln_bind_packed(model, "/no/such/file", &Error), KILN_FILE_ERROR);
  EXPECT_STREQ(Error.message, "cannot open weight file \"/no/such/file\": No such file or directory");
  EXPECT_EQ(kiln_bind_packed(model, "/", &Error), KILN_FILE_ERROR);
  EXPECT_STREQ(Error.message, "cannot read weight file \"/\": not a regular file");
  EXPECT_EQ(kiln_bind_packed(model, "/no/such/file", nullptr), KILN_FILE_ERROR);
  EXPECT_EQ(model->packed, nullptr);
}

TEST_F(Packed, FilesThatCannotBeWrittenAreNotThere) {
  kiln_model_t *model = createBound();
  EXPECT_EQ(kiln_save_packed(model, "/no/such/file", &Error), KILN_FILE_ERROR);
  EXPECT_NE(std::string(Error.message).find("cannot create weight file \"/no/such/file."), std::string::npos)
      << Error.message;
  EXPECT_EQ(kiln_save_packed(model, std::string(5000, 'f').c_str(), &Error), KILN_FILE_ERROR);
  EXPECT_NE(std::string(Error.message).find("File name too long"), std::string::npos) << Error.message;
  // The path is a folder.
  const std::string folder = Path + "-folder";
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  EXPECT_EQ(kiln_save_packed(model, folder.c_str(), &Error), KILN_FILE_ERROR);
  EXPECT_NE(std::string(Error.message).find("\": not a regular file"), std::string::npos) << Error.message;
  EXPECT_TRUE(fs::is_empty(folder));
  EXPECT_FALSE(fs::exists(folder + "." + std::to_string(getpid()) + ".part"));
  fs::remove(folder);
  // Another process is writing the temporary file.
  const std::string part = Path + "." + std::to_string(getpid()) + ".part";
  std::ofstream(part) << "x";
  const int writer = open(part.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(flock(writer, LOCK_EX), 0);
  EXPECT_EQ(save(model), KILN_FILE_ERROR);
  EXPECT_NE(std::string(Error.message).find("File exists"), std::string::npos) << Error.message;
  EXPECT_EQ(readFile(part), "x");
  // A killed process with the same id, which is common for the first process of a container, no longer holds the lock.
  close(writer);
  EXPECT_EQ(save(model), KILN_OK) << Error.message;
  EXPECT_FALSE(fs::exists(part));
}

TEST_F(Packed, AFullDiskLeavesTheOldFile) {
  kiln_model_t *model = createBound();
  std::ofstream(Path) << "old";
  rlimit before = {};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  for (rlim_t bytes : {0, 100, 4096, 4100}) {
    const rlimit limit = {bytes, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    EXPECT_EQ(save(model), KILN_FILE_ERROR) << bytes;
    setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_NE(std::string(Error.message).find("cannot write weight file"), std::string::npos) << Error.message;
    EXPECT_NE(std::string(Error.message).find("File too large"), std::string::npos) << Error.message;
    EXPECT_EQ(readFile(Path), "old");
  }
  signal(SIGXFSZ, handler);
  EXPECT_EQ(save(model), KILN_OK) << Error.message;
}

TEST_F(Packed, WhatMakesNoSenseIsRefused) {
  kiln_model_t *model = create();
  EXPECT_EQ(save(model), KILN_WEIGHTS_NOT_BOUND);
  EXPECT_STREQ(Error.message, "save_packed: no weights; expected bound ones");
  EXPECT_EQ(kiln_save_packed(nullptr, "x", &Error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(Error.message, "save_packed: null given; expected a model");
  EXPECT_EQ(kiln_save_packed(model, nullptr, &Error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(Error.message, "save_packed: null given; expected a path");
  EXPECT_EQ(kiln_bind_packed(nullptr, "x", &Error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(Error.message, "bind_packed: null given; expected a model");
  EXPECT_EQ(kiln_bind_packed(model, nullptr, nullptr), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(kiln_target(model), "x86-64-v2");
  EXPECT_STREQ(kiln_target(nullptr), "");
}

} // namespace
